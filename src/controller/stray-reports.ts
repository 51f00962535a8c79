import type { PipeScalingStatus } from "../crd/pipe-scaling.ts";
import type { Store } from "../runtime/store.ts";
import type { Scaling } from "./scaling.ts";

interface Report {
  readonly words: string;
  hasYielded: boolean;
}

/**
 * What this process has said of PipeScalings that it does not look after. Where the namespaces of two controllers
 * overlap, what is one's own is the other's stray; both would write over each other's words for ever, so the one
 * that does not look after it speaks once, and then yields.
 */
export class StrayReports {
  readonly #reports = new Map<string, Report>();

  constructor(scalings: Store<Scaling>) {
    scalings.onChange((change) => {
      if (change.type === "deleted") this.forget(change.previous);
    });
  }

  /** What to do about a stray that does not say what it should. */
  next(stray: Scaling, status: PipeScalingStatus): "say" | "yield" | "keep quiet" {
    const report = this.#reports.get(stray.metadata.uid);
    const words = wordsOf(status);
    // Where only its generation is new, nobody else has spoken.
    if (report?.words !== words || wordsOf(stray.status) === words) return "say";
    if (report.hasYielded) return "keep quiet";
    report.hasYielded = true;
    return "yield";
  }

  said({ metadata }: Scaling, status: PipeScalingStatus): void {
    this.#reports.set(metadata.uid, { words: wordsOf(status), hasYielded: false });
  }

  /** It is no stray any more. */
  forget({ metadata }: Scaling): void {
    this.#reports.delete(metadata.uid);
  }
}

/** Without generations and times, which change with what is there. */
function wordsOf({ conditions = [] }: PipeScalingStatus): string {
  return JSON.stringify(conditions.map(({ reason, message }) => [reason, message]));
}
