import type { Deployment } from "../../kube/objects.ts";
import type { Action } from "../actions.ts";
import { formatLastRollout } from "../observe/last-rollout.ts";
import type { WriteError } from "../observe/write-record.ts";
import { type Applier, attempt } from "./applier.ts";
import { problemIn, roomProblem, sizeProblem } from "./capacity.ts";
import { pipePatch, resourcesPatch } from "./pipe-patch.ts";

/** Searches for nodes with room for the new pods of a pipe, in place of the old ones. */
export function checkRoom(
  applier: Applier,
  action: Extract<Action, { readonly type: "check-room" }>,
): Promise<WriteError | undefined> {
  const { pipe, subject, rollout, stopping, fullNodes } = action;
  const purpose = "check-room";
  return attempt(applier, pipe, { purpose, subject }, async () => {
    const annotation = formatLastRollout(rollout, pipe.metadata.uid);
    const request = pipePatch(pipe, annotation, resourcesPatch(action, rollout.size));
    let resized: Deployment;
    try {
      resized = await applier.client.json({ ...request, query: { ...request.query, dryRun: "All" } });
    } catch (error) {
      return { error: problemIn(error) };
    }
    const { spec } = resized.spec.template;
    const tooLarge = await sizeProblem(applier, spec);
    if (tooLarge) return { error: tooLarge };
    const error = await roomProblem(applier, { pipe, spec, stopping, fullNodes });
    return { error };
  });
}
