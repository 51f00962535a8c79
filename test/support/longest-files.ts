import { relative } from "node:path";
import type { Reporter, TestModule, Vitest } from "vitest/node";

const LISTED = 30;

/** Prints the longest test files of a run as the rows of the table in docs/contributing/tests.md. */
class LongestFilesReporter implements Reporter {
  #root = "";

  onInit(vitest: Vitest): void {
    this.#root = vitest.config.root;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const rows = modules
      .map((module) => {
        const { setupDuration, duration } = module.diagnostic();
        return { file: relative(this.#root, module.moduleId), seconds: (setupDuration + duration) / 1000 };
      })
      .sort((a, b) => b.seconds - a.seconds)
      .slice(0, LISTED)
      .map(({ file, seconds }) => `| \`${file}\` | ${Math.round(seconds)} |\n`);
    process.stdout.write(`\n${rows.join("")}\n`);
  }
}

// biome-ignore lint/style/noDefaultExport: vitest takes a reporter's file by its default export
export default LongestFilesReporter;
