import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { stringify } from "yaml";
import packageJson from "../../package.json" with { type: "json" };
import { KUBECTL_COMPLETION } from "../../src/cli/completion/kubectl.ts";
import type { Release } from "./release.ts";

/** The name of the plugin, and of its manifest without `.yaml`. */
export const KREW_PLUGIN = "pipes";

/**
 * Returns the manifest with which krew installs the plugin from the npm package, which is a file of the release. The
 * package contains no machine code, so it is the same on every platform. krew cannot run a script on Windows.
 *
 * @param archive path of the npm package
 */
export function krewManifest(
  { version, source }: Pick<Release, "version" | "source">,
  archive: string,
): string {
  return stringify(
    {
      apiVersion: "krew.googlecontainertools.github.com/v1alpha2",
      kind: "Plugin",
      metadata: { name: KREW_PLUGIN },
      spec: {
        version: `v${version}`,
        homepage: source,
        shortDescription: "Show and manage the sizes of database pipes",
        description: DESCRIPTION,
        caveats: CAVEATS,
        platforms: [
          {
            selector: { matchExpressions: [{ key: "os", operator: "In", values: ["darwin", "linux"] }] },
            uri: `${source}/releases/download/v${version}/${basename(archive)}`,
            sha256: createHash("sha256").update(readFileSync(archive)).digest("hex"),
            files: [{ from: "package/*", to: "." }],
            bin: "kubectl-pipes.mjs",
          },
        ],
      },
    },
    { lineWidth: 0 },
  );
}

const DESCRIPTION = `The command line of pipe-scaling-operator for platform teams. It shows the
progress of rescales, checks the installation, and manages organizations,
services, members and API keys with the permissions of your kubeconfig.
`;

const CAVEATS = `The plugin needs Node.js ${packageJson.engines.node.replace(">=", "")} or newer on the PATH.

To complete its commands in the shell:
  kubectl pipes completion > ~/.krew/bin/${KUBECTL_COMPLETION}
  chmod +x ~/.krew/bin/${KUBECTL_COMPLETION}
`;
