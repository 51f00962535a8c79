import { join } from "node:path";
import { GO_REMEDY, installTools } from "./go.ts";
import { once } from "./once.ts";

/** Returns the path of the program that checks GitHub workflows. */
export async function actionlint(): Promise<string> {
  const dir = await once({
    name: "actionlint",
    what: "the program that checks the workflows",
    remedy: GO_REMEDY,
    files: ["actionlint/go.mod", "actionlint/go.sum"],
    make: (staging, out) => installTools(join(staging, "actionlint"), out),
  });
  return join(dir, "actionlint");
}
