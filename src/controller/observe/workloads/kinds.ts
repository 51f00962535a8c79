import type { ObjectMeta } from "../../../kube/objects.ts";
import { DEPLOYMENTS, type Resource, STATEFUL_SETS } from "../../../kube/paths.ts";
import type { Workload } from "../../../kube/workloads.ts";
import type { PipeView } from "../pipe-view.ts";
import { toPipeView } from "./deployment.ts";
import { toStatefulPipeView } from "./stateful-set.ts";

/** The kinds of workloads that can be pipes. */
export const PIPE_KINDS = ["Deployment", "StatefulSet"] as const;

export type PipeKind = (typeof PIPE_KINDS)[number];

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

interface Named {
  readonly metadata: Pick<ObjectMeta, "name" | "namespace">;
}

interface OfKind extends Named {
  readonly kind: PipeKind;
}

/**
 * Name of a pipe, unique in its namespace: the name of a Deployment, or `statefulset/<name>`, which kubectl accepts.
 */
export function nameOf({ kind, metadata }: OfKind): string {
  return pipeName(kind, metadata.name);
}

/** Like {@link nameOf}, from the kind and the name of a workload. */
export function pipeName(kind: PipeKind, name: string): string {
  return kind === "Deployment" ? name : `${kind.toLowerCase()}/${name}`;
}

/** Identifies a pipe among those of all kinds and namespaces. */
export function keyOfPipe(pipe: OfKind): string {
  return pipeKey(pipe, nameOf(pipe));
}

/** The key of the pipe with this name in the namespace of the object. */
export function pipeKey({ metadata: { namespace } }: Named, name: string): string {
  return [namespace, name].join("/");
}

/** Empty without a name. */
export function pipeKeysOf(object: Named, name: string | undefined): readonly string[] {
  return name === undefined ? [] : [pipeKey(object, name)];
}
