import { existsSync } from "node:fs";
import type { Reporter, TestModule, TestSpecification } from "vitest/node";

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

/**
 * Prints `N passed, N failed` as the last line, after the global teardown and all other output, so that a script can
 * read it.
 *
 * Failures outside of tests count too: of a file that could not be collected, of a hook or a setup, or an unhandled
 * error. A run without tests is one failure, and so is each test file on the command line that the command does not
 * run.
 */
class CountsReporter implements Reporter {
  #counts: Counts = { passed: 0, failed: 0, skipped: 0 };
  /** Paths of the test files that run. */
  #files: readonly string[] = [];

  onInit(): void {
    process.on("exit", this.#print);
  }

  onTestRunStart(specifications: readonly TestSpecification[]): void {
    this.#files = specifications.map(({ moduleId }) => moduleId);
    const seeds = new Set(specifications.map(({ project }) => project.getProvidedContext().seed));
    for (const seed of seeds) {
      if (seed !== undefined) process.stdout.write(`Seed of the random tests: ${seed}\n`);
    }
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    this.#counts = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
    for (const module of modules) count(module, this.#counts);
    // Moved to the end of the queue, because listeners added after onInit may print something.
    process.off("exit", this.#print);
    process.on("exit", this.#print);
  }

  readonly #print = (exitCode: number): void => {
    const { passed, skipped } = this.#counts;
    let { failed } = this.#counts;
    for (const file of namedFiles(process.argv)) {
      if (this.#files.some((path) => path.endsWith(file))) continue;
      failed += 1;
      process.stdout.write(`${notRun(file)}\n`);
    }
    // A failed setup or teardown is not counted, and a run without tests is a failure.
    if (failed === 0 && (exitCode !== 0 || passed === 0)) failed = 1;
    if (failed > 0 && exitCode === 0) process.exitCode = 1;
    const rest = skipped > 0 ? `, ${skipped} skipped` : "";
    process.stdout.write(`${passed} passed, ${failed} failed${rest}\n`);
  };
}

/** Returns the test files that the command line names. */
function namedFiles(argv: readonly string[]): readonly string[] {
  const files = argv.slice(2).filter((argument) => argument.endsWith(".test.ts"));
  return files.map((file) => file.replace(/^\.\//, ""));
}

/** Vitest ignores a named file that is not in the selected projects, if it finds another one. */
function notRun(file: string): string {
  if (!existsSync(file)) return `There is no test file ${file}.`;
  return `${file} is not one of the tests that this command runs. Run: npm ${scriptOf(file)} -- ${file}`;
}

function scriptOf(file: string): string {
  if (file.includes("/kubelet/")) return "run test:kubelet";
  return file.endsWith(".slow.test.ts") ? "run test:slow" : "test";
}

function count(module: TestModule, counts: Counts): void {
  if (module.errors().length > 0) counts.failed++;
  for (const suite of module.children.allSuites()) {
    if (suite.errors().length > 0) counts.failed++;
  }
  for (const test of module.children.allTests()) {
    // A pending test never ran: the run was canceled, and its exit code shows it.
    const { state } = test.result();
    if (state !== "pending") counts[state]++;
  }
}

// biome-ignore lint/style/noDefaultExport: vitest takes a reporter's file by its default export
export default CountsReporter;
