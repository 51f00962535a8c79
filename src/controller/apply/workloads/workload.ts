import type { InPlaceAction } from "../../actions.ts";
import type { PipeView } from "../../observe/pipe-view.ts";
import type { WriteError } from "../../observe/write-record.ts";
import type { Applier } from "../applier.ts";

export type Of<Type extends InPlaceAction["type"]> = Extract<InPlaceAction, { readonly type: Type }>;

type Apply<Type extends InPlaceAction["type"]> = (
  applier: Applier,
  action: Of<Type>,
) => Promise<WriteError | undefined>;

/** How the template of one kind of workload follows the pods that were resized in place. */
export interface Workload {
  /** The part of the spec that changes with the size when a commit begins, so that the new template starts no rollout. */
  readonly pause: (pipe: PipeView) => object;
  /** Begins to set the size in the template, without a rollout. */
  readonly commit: Apply<"commit">;
  /** Reads the workload, and makes the next write. */
  readonly continueCommit: Apply<"continue-commit">;
  /** Ends the commit; with a fallback, pods are replaced then. */
  readonly resume: Apply<"resume">;
  /** Replaces pods that do not have the size of the template, and that cannot be resized. */
  readonly replacePods: Apply<"replace-pods">;
}
