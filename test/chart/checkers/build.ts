import { join } from "node:path";
import { GO_REMEDY, installTools } from "./go.ts";
import { once } from "./once.ts";

/** Programs with a Go module each in this folder. */
const CHECKERS = ["kubeconform", "kube-score", "promtool"] as const;
type Checker = (typeof CHECKERS)[number];

/** Timeout if the checkers must be built first, on a new machine that also runs other tests. */
export const BUILD_MS = 30 * 60_000;

/** Returns the paths of the programs that check the rendered chart. */
export async function checkers(): Promise<(checker: Checker) => string> {
  const dir = await once({
    name: "manifests",
    what: "the programs that check the chart",
    remedy: GO_REMEDY,
    files: CHECKERS.flatMap((checker) => [`${checker}/go.mod`, `${checker}/go.sum`]),
    make: async (staging, out) => {
      for (const checker of CHECKERS) await installTools(join(staging, checker), out);
    },
  });
  return (checker) => join(dir, checker);
}
