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

/** The table of kinds. The writes that differ between them are in apply/workloads/. */
export const KINDS: Readonly<Record<PipeKind, Kind>> = {
  Deployment: { resource: DEPLOYMENTS, toView: toPipeView },
  StatefulSet: { resource: STATEFUL_SETS, toView: toStatefulPipeView },
};
