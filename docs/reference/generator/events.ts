import { FAILURE_REASON_TABLE } from "../../../src/crd/failure-reasons.ts";
import { code, sections, table } from "./markdown.ts";

export function eventsPage(): string {
  const obstacles = Object.entries(FAILURE_REASON_TABLE);
  return sections(
    "# Events",
    "The controller records Events on the PipeScaling when a rescale completes or something blocks it, once each. An Event about a size includes the ID of the request for it. Events on a Deployment or StatefulSet report a resize in place, or why a pipe that no PipeScaling manages is not resized. The start of a rescale is not an Event; the status shows it. The API records no Events.",
    "```sh\nkubectl events --for pipescaling/<service> -n <namespace>\nkubectl events --for deployment/<pipe> -n <namespace>   # or statefulset/<pipe>\n```",
    table(
      ["type", "reason", "when"],
      [
        ["Normal", code("Scaled"), "A rescale is complete: the pods of every pipe run the size."],
        [
          "Normal",
          code("ResizedInPlace"),
          "The pods of a pipe were resized in place, without a rollout. The Event is on its Deployment or StatefulSet.",
        ],
        [
          "Normal",
          code("FellBackToRollout"),
          "Pipes cannot be resized in place and fall back to a rollout, once for each [reason](../explanation/in-place.md#reasons-for-a-rollout).",
        ],
        ...obstacles.map(([reason, { meaning }]) => ["Warning", code(reason), meaning]),
      ],
    ),
    "[errors.md](errors.md#reasons-of-a-rescale) has the remedy for each Warning.",
    "Repetitions of an Event within a few minutes increase the count of the first one, and the number of Events per object is limited. Like all Events, they expire after an hour; the status has the current state.",
  );
}
