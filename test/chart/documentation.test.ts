import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { environment } from "@pipe-scaling/local-cluster/environment";
import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { run } from "@pipe-scaling/local-cluster/run";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { describe, expect, it, onTestFinished } from "vitest";
import { certificatePair } from "../support/fixtures/certificate.ts";
import { temporaryFolder } from "../support/fixtures/kubeconfig.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** Namespaces that the page requires. */
const NAMESPACES_OF_PIPES = ["acme-pipes", "globex-pipes"];
/** Commands that need a container engine or running pods, which other tests cover. */
const NOT_HERE = /^(docker|helm test) /;
const SERVED = { what: "PipeScalings to be served" };
const WITHOUT_HELM = /deploy\/manifests|--selector/;

/** Code blocks of docs/install.md, in order. */
const blocks = [
  ...readFileSync(join(ROOT, "docs", "install.md"), "utf8").matchAll(/^```(sh|yaml)\n(.*?)^```$/gms),
].map(([, language = "", text = ""]) => ({ language, text }));

/** Files that the page tells the reader to create; their first line is a comment with the name. */
const files = blocks.flatMap(({ language, text }) => {
  const [, name] = /^# (\S+\.yaml)\n/.exec(text) ?? [];
  return language === "yaml" && name !== undefined ? [{ name, text }] : [];
});
const commands = blocks
  .filter(({ language, text }) => language === "sh" && !NOT_HERE.test(text))
  .map(({ text }) => text);
/** The last steps, which both ways share. */
const last = commands.slice(-1);

/** A checkout as the reader has it, and an empty cluster. */
async function desk(): Promise<{ cluster: Cluster; type: (command: string) => Promise<string> }> {
  const dir = temporaryFolder();
  const cluster = await startCluster();
  onTestFinished(() => cluster.stop());
  const bin = join(dir, "bin");
  mkdirSync(bin);
  const program = `#!/bin/sh\nexec "${process.execPath}" "${join(ROOT, "src", "main.ts")}" "$@"\n`;
  writeFileSync(join(bin, "pipe-scaling"), program);
  chmodSync(join(bin, "pipe-scaling"), 0o755);
  for (const name of ["deploy", "crds"]) symlinkSync(join(ROOT, name), join(dir, name));
  for (const { name, text } of files) writeFileSync(join(dir, name), text);
  const { cert, key } = certificatePair("api");
  writeFileSync(join(dir, "tls.crt"), cert);
  writeFileSync(join(dir, "tls.key"), key);
  for (const name of NAMESPACES_OF_PIPES) await kubectl(cluster, ["create", "namespace", name]);
  const env = {
    PATH: [bin, cluster.binaries.dir, environment["PATH"]].join(delimiter),
    HOME: dir,
    KUBECONFIG: cluster.kubeconfig,
  };
  const type = async (command: string) => {
    const { code, stdout, stderr } = await run("sh", ["-eu", "-c", command], { cwd: dir, env });
    return code === 0 ? "" : `${command}${stdout}${stderr}`;
  };
  return { cluster, type };
}

describe("docs/install.md", { timeout: 180_000 }, () => {
  it.each([
    ["with Helm", commands.filter((command) => !WITHOUT_HELM.test(command)), 10],
    ["without Helm", [...commands.filter((command) => WITHOUT_HELM.test(command)), ...last], 3],
  ])("installs and removes the operator %s", async (_, story, count) => {
    expect(story).toHaveLength(count);
    const { cluster, type } = await desk();
    for (const command of story) {
      // After a change, a CRD is not served for a moment, which is shorter than the time to type a command.
      if (/^pipe-scaling /m.test(command))
        await waitFor(() => kubectl(cluster, ["get", "psc", "-A"]), SERVED);
      expect(await type(command)).toBe("");
    }
    expect(await kubectl(cluster, ["get", "crd", "-o", "name"])).toBe("");
  });
});
