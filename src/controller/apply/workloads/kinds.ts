import type { PipeKind } from "../../observe/pipe-kind.ts";
import type { PipeView } from "../../observe/pipe-view.ts";
import { DEPLOYMENT } from "./deployment.ts";
import type { Workload } from "./workload.ts";

/** Absent for kinds whose pods are not resized in place. */
const WORKLOADS: { readonly [Kind in PipeKind]?: Workload } = { Deployment: DEPLOYMENT };

/** @throws Error if decisions and this table differ */
export function workloadOf({ kind }: PipeView): Workload {
  const workload = WORKLOADS[kind];
  if (!workload) throw new Error(`the template of a ${kind} cannot follow its pods`);
  return workload;
}
