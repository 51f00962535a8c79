import { join } from "node:path";
import { GO_REMEDY, installTools } from "./go.ts";
import { once } from "./once.ts";

/** Programs with a Go module each in this folder. */
const CHECKERS = ["kubeconform", "kube-score", "promtool"] as const;
type Checker = (typeof CHECKERS)[number];

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
