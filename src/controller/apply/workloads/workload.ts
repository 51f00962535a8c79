import { isUnmanaged } from "../../../kube/managers.ts";
import type { ManagedFields } from "../../../kube/objects.ts";
import type { Workload } from "../../../kube/workloads.ts";
import type { Of } from "../../actions.ts";
import type { Fallback } from "../../observe/last-rollout.ts";
import type { PipeView } from "../../observe/pipe-view.ts";
import type { Allotment, Resources } from "../../observe/resources.ts";
import { PARTITION, PAUSED } from "../../observe/workloads/field-owners.ts";
import type { WriteError } from "../../observe/write-record.ts";
import { recordOf } from "../adopt.ts";
import type { Applier, WholeWorkload } from "../applier.ts";

/** A workload in the middle of a commit, as it was just read. */
export interface Held {
  readonly whole: WholeWorkload;
  readonly view: PipeView;
}

export type NextStep =
  | { readonly type: "wait" }
  /** Makes the objects that belong to the workload match its template: its ReplicaSet, or the labels of its pods. */
  | { readonly type: "relabel"; readonly write: () => Promise<void> }
  /** @param fallback why the release lets Kubernetes replace pods; absent if it does not */
  | { readonly type: "release"; readonly fallback?: Fallback | undefined }
  /** The template gets its old resources again, so that no pod is replaced. `old`: the same, if possible as a size. */
  | { readonly type: "take-back"; readonly resources: Resources; readonly old: Allotment };

export interface Prepared {
  /** Why the commit cannot begin now. */
  readonly error?: WriteError;
  /** If present, the write that begins the commit replaces the managedFields of the workload with these. */
  readonly managedFields?: readonly ManagedFields[] | undefined;
}

/** The parts of a commit (commit.ts) that depend on the kind of workload. */
export interface CommitKind {
  /** The part of the spec that keeps Kubernetes from replacing pods whose template changes. */
  readonly hold: (pipe: PipeView) => object;
  /** The part of the spec that ends the hold. */
  readonly release: (pipe: PipeView) => object;
  /**
   * Makes sure, before the template changes, that the pods can stay.
   *
   * @throws the error of a request
   */
  readonly prepare: (applier: Applier, action: Of<"commit">) => Promise<Prepared>;
  /** Reads what belongs to the workload, and decides the next step. `canRelabel`: false after a refusal. */
  readonly nextStep: (
    applier: Applier,
    held: Held,
    action: Of<"continue-commit">,
    canRelabel: boolean,
  ) => Promise<NextStep>;
  /**
   * Makes Kubernetes replace the pods that do not have the size of the template.
   *
   * @returns a conflict if what was read shows no such pod, so that our view is outdated
   */
  readonly replacePods: (
    applier: Applier,
    whole: WholeWorkload,
    action: Of<"replace-pods">,
  ) => Promise<WriteError | undefined>;
}

/**
 * Returns the managedFields to write with a hold; `undefined` if none are necessary. If they were reset, the API server
 * records who holds the workload only if a write contains such a record. The annotation also shows it, but an admission
 * webhook may remove that, and the first server-side apply assigns all fields to the manager `before-first-apply`.
 */
export function recordOfHold(
  { inTurn }: PipeView,
  { metadata }: Workload,
): readonly ManagedFields[] | undefined {
  if (!isUnmanaged(metadata.managedFields) || inTurn?.needsHold === false) return undefined;
  return [recordOf(inTurn ? PARTITION : PAUSED)];
}
