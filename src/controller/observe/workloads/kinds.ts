import { DEPLOYMENTS, type Resource, STATEFUL_SETS } from "../../../kube/paths.ts";
import type { Workload } from "../../../kube/workloads.ts";
import type { PipeKind } from "../pipe-kind.ts";
import type { PipeView } from "../pipe-view.ts";
import { toPipeView } from "./deployment.ts";
import { toStatefulPipeView } from "./stateful-set.ts";

/** How the workloads of one kind are read. */
interface Kind {
  readonly resource: Resource<Workload>;
  toView(workload: Workload): PipeView;
}

/** Everything else is the same for all kinds (apply/workloads/ has how their templates follow their pods). */
export const KINDS: Readonly<Record<PipeKind, Kind>> = {
  Deployment: { resource: DEPLOYMENTS, toView: toPipeView },
  StatefulSet: { resource: STATEFUL_SETS, toView: toStatefulPipeView },
};
