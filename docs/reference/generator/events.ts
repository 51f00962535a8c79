import { code, sections, table } from "./markdown.ts";
import { REASON_TEXTS } from "./reasons.ts";

export function eventsPage(): string {
  const obstacles = Object.entries(REASON_TEXTS).filter(([, { shows }]) => shows === "Stalled");
  return sections(
    "# Events",
    "The controller tells as an Event of the PipeScaling what a person would want to hear of, once, with the id of the request that asked for the size. That a rescale has begun is none: the status says so. The API writes no Events.",
    "```sh\nkubectl events --for pipescaling/<service> -n <namespace>\n```",
    table(
      ["type", "reason", "when"],
      [
        ["Normal", code("Scaled"), "A change of size is complete: every pipe runs it."],
        ...obstacles.map(([reason, { meaning }]) => ["Warning", code(reason), meaning]),
      ],
    ),
    "What to do about a Warning is in [errors.md](errors.md#why-a-rescale-is-where-it-is). Where Kubernetes has a word of its own for why the pods of a pipe cannot be made, the Event has that as its reason.",
    "The same Event about the same PipeScaling within some minutes is counted on the first one, and no PipeScaling is told of more than a few times in a row. Like all Events they end after an hour: what counts is in the status.",
  );
}
