/**
 * Node options of the two processes, used by the chart and by the benchmarks.
 *
 * The memory of the controller grows with the number of pipes, and its work comes in bursts, so less memory is worth
 * more CPU time: a small young generation of a constant size, a heap that grows in small steps because V8 optimizes for
 * size and the limit is half of the container's, and an allocator that returns memory early (docs/benchmarks.md). The
 * API has a steady load of short requests. With the young generation that V8 chooses for a container of this size, 1 MB,
 * objects of requests in flight reach the old one, and a cached GET takes up to 1.5 times the CPU time.
 */
export const NODE: Readonly<Record<"api" | "controller", NodeStart>> = {
  api: { args: ["--max-semi-space-size=8"], env: {} },
  controller: {
    args: [
      "--min-semi-space-size=2",
      "--max-semi-space-size=2",
      "--max-old-space-size-percentage=50",
      "--optimize-for-size",
    ],
    env: { MALLOC_ARENA_MAX: "2", MALLOC_TRIM_THRESHOLD_: "131072" },
  },
};

export interface NodeStart {
  /** Arguments before the path of the program. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}
