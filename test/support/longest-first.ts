import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const PAGE = new URL("../../docs/contributing/tests.md", import.meta.url);

/** Returns the durations in seconds that the page on tests lists, by the path of the test file. */
export function recordedDurations(): ReadonlyMap<string, number> {
  const rows = readFileSync(PAGE, "utf8").matchAll(/^\| `(test\/.+\.test\.ts)` \| (\d+) \|$/gm);
  return new Map([...rows].map(([, file = "", seconds]) => [file, Number(seconds)]));
}

/**
 * Starts the longest test files first, so that none of them runs alone at the end. The files without a recorded
 * duration are short; vitest orders them.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const durations = recordedDurations();
    const durationOf = ({ moduleId }: TestSpecification) =>
      durations.get(relative(this.ctx.config.root, moduleId)) ?? 0;
    const ordered = await super.sort(files);
    // Stable, so the files without a duration keep their order.
    return ordered.toSorted((a, b) => durationOf(b) - durationOf(a));
  }
}
