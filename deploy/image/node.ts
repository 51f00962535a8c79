import { MEMORY_LIMIT_MIB } from "../chart/values.ts";

/** An allocator that returns memory early. */
const MALLOC = { MALLOC_ARENA_MAX: "2", MALLOC_TRIM_THRESHOLD_: "131072" };

/**
 * Node options of the two processes, used by the chart and by the benchmarks.
 *
 * The memory of the controller grows with the number of pipes, and its work comes in bursts, so less memory is worth
 * more CPU time: a small young generation of a constant size, and a heap that grows in small steps because V8 optimizes
 * for size and the limit is half of the container's (bench/NOTES.md). The API has a steady load of short requests.
 * With the young generation that V8 chooses for a container of this size, 1 MB, objects of requests in flight reach the
 * old one, and a cached GET takes up to 1.5 times the CPU time. The limit of its heap leaves room for connections: V8
 * collects garbage before the kernel ends the process.
 */
export const NODE: Readonly<Record<"api" | "controller", NodeStart>> = {
  api: { args: ["--max-semi-space-size=8", "--max-old-space-size-percentage=60"], env: MALLOC },
  controller: {
    args: [
      "--min-semi-space-size=2",
      "--max-semi-space-size=2",
      "--max-old-space-size-percentage=50",
      "--optimize-for-size",
    ],
    env: MALLOC,
  },
};

export interface NodeStart {
  /** Arguments before the path of the program. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

const HEAP_PERCENTAGE = /^--max-old-space-size-percentage=(\d+)$/;

/** Returns the arguments for a process without a memory limit, with the heap limit that it has in its container. */
export function argsWithoutContainer(component: keyof typeof NODE): readonly string[] {
  const heapMib = (percentage: string) =>
    Math.floor((MEMORY_LIMIT_MIB[component] * Number(percentage)) / 100);
  return NODE[component].args.map((arg) =>
    arg.replace(HEAP_PERCENTAGE, (_arg, percentage: string) => `--max-old-space-size=${heapMib(percentage)}`),
  );
}
