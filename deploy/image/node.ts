/**
 * How the chart starts Node for each of the two processes; the benchmarks measure them so.
 *
 * The controller's memory grows with the pipes, and its work comes in bursts with long rests: a small young
 * generation, and an allocator that keeps little for later, are a third of its memory (docs/benchmarks.md). The
 * API answers at all times, and is left as Node would have it.
 */
export const NODE: Readonly<Record<"api" | "controller", NodeStart>> = {
  api: { args: [], env: {} },
  controller: {
    args: ["--max-semi-space-size=2", "--optimize-for-size"],
    env: { MALLOC_ARENA_MAX: "2", MALLOC_TRIM_THRESHOLD_: "131072" },
  },
};

export interface NodeStart {
  /** Before the program's path. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}
