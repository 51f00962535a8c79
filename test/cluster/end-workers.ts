import { atExit } from "./at-exit.ts";
import { environment } from "./environment.ts";
import { openPaths } from "./paths.ts";
import { killChildren } from "./processes.ts";
import { sweep } from "./remove.ts";

/**
 * A global setup of vitest: when the run ends, also after Ctrl-C, its workers end, and the clusters that they started are
 * removed.
 */
export function setup(): void {
  atExit(() => {
    killChildren();
    sweep(openPaths(environment));
  });
}
