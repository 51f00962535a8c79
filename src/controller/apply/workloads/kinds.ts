import type { PipeKind } from "../../observe/pipe-kind.ts";
import { DEPLOYMENT } from "./deployment.ts";
import { STATEFUL_SET } from "./stateful-set.ts";
import type { Workload } from "./workload.ts";

export const WORKLOADS: Readonly<Record<PipeKind, Workload>> = {
  Deployment: DEPLOYMENT,
  StatefulSet: STATEFUL_SET,
};
