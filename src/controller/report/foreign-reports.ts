import type { PipeScalingStatus } from "../../crd/pipe-scaling.ts";
import type { Store } from "../../runtime/store.ts";
import type { PipeScalingView } from "../observe/pipe-scaling-view.ts";

interface Report {
  readonly words: string;
  hasYielded: boolean;
}

/**
 * What this process has said of PipeScalings that it does not look after. Where the namespaces of two controllers
 * overlap, what is one's own is the other's foreign; both would write over each other's words for ever, so the one
 * that does not look after it speaks once, and then yields.
 */
export class ForeignReports {
  readonly #reports = new Map<string, Report>();

  constructor(scalings: Store<PipeScalingView>) {
    scalings.onChange((change) => {
      if (change.type === "deleted") this.forget(change.previous);
    });
  }

  /** What to do about a foreign that does not say what it should. */
  next(foreign: PipeScalingView, status: PipeScalingStatus): "say" | "yield" | "keep quiet" {
    const report = this.#reports.get(foreign.metadata.uid);
    const words = wordsOf(status);
    // Where only its generation is new, nobody else has spoken.
    if (report?.words !== words || wordsOf(foreign.status) === words) return "say";
    if (report.hasYielded) return "keep quiet";
    report.hasYielded = true;
    return "yield";
  }

  said({ metadata }: PipeScalingView, status: PipeScalingStatus): void {
    this.#reports.set(metadata.uid, { words: wordsOf(status), hasYielded: false });
  }

  /** It is no foreign any more. */
  forget({ metadata }: PipeScalingView): void {
    this.#reports.delete(metadata.uid);
  }
}

/** Without generations and times, which change with what is there. */
function wordsOf({ conditions = [] }: PipeScalingStatus): string {
  return JSON.stringify(conditions.map(({ reason, message }) => [reason, message]));
}
