import { mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { environment } from "@pipe-scaling/local-cluster/environment";
import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { run } from "@pipe-scaling/local-cluster/run";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { describe, expect, it, onTestFinished } from "vitest";
import { temporaryFolder } from "../support/fixtures/kubeconfig.ts";
import { UnpackedImage } from "./image.ts";
import { PodProcess } from "./pod-process.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** Parts of a checkout that the page uses. */
const CHECKOUT = ["crds", "deploy", "node_modules", "package.json", "src"];
/** Commands that need a container engine, running pods or a registry of packages. */
const NOT_HERE = /^(docker|helm test|npm ci|kubectl port-forward)\b/;
const SERVED = { what: "PipeScalings to be served" };
const WITHOUT_HELM = /deploy\/manifests|--selector|openssl/;
/** The address of the forwarded port. */
const FORWARDED = "https://localhost:8443";

/** The commands of docs/install.md, in order. */
const commands = [...readFileSync(join(ROOT, "docs", "install.md"), "utf8").matchAll(/^```sh\n(.*?)^```$/gms)]
  .map(([, text = ""]) => text)
  .filter((text) => !NOT_HERE.test(text));
/** The first step and the last steps, which both ways share. */
const [first, last] = [commands.slice(0, 1), commands.slice(-1)];

const RELEASE = {
  name: "pipe-scaling-operator",
  namespace: "pipe-scaling-system",
  records: "pipe-scaling-records",
  pipes: "acme-pipes",
};

/** A shell in a checkout as the reader has it, and an empty cluster. */
async function desk(): Promise<{ cluster: Cluster; type: (command: string) => Promise<string> }> {
  const dir = temporaryFolder();
  // A cluster of its own, because the page installs a release into an empty cluster.
  const cluster = await startCluster();
  onTestFinished(() => cluster.stop());
  for (const name of CHECKOUT) symlinkSync(join(ROOT, name), join(dir, name));
  const home = join(dir, "home");
  mkdirSync(home);
  const env = {
    // The node of the reader may be older; the page puts that of the checkout first on the PATH.
    PATH: [cluster.binaries.dir, environment["PATH"]].join(delimiter),
    HOME: home,
    KUBECONFIG: cluster.kubeconfig,
  };
  const type = async (command: string) => {
    // All commands share one shell, with its variables and functions.
    const script = `if [ -e shell ]; then . ./shell; fi\nset -a\n${command}\n{ export -p; declare -f; } > shell`;
    const { code, stdout, stderr } = await run("bash", ["-eu", "-c", script], { cwd: dir, env });
    if (code !== 0) throw new Error(`${command}${stdout}${stderr}`);
    return stdout;
  };
  return { cluster, type };
}

/** Starts the processes of the release, because simulated pods run nothing. Returns the address of the API. */
async function startProcesses(cluster: Cluster): Promise<string> {
  const image = await UnpackedImage.build();
  onTestFinished(() => image[Symbol.dispose]());
  const start = async (component: "api" | "controller") => {
    const started = await PodProcess.start(image, cluster, RELEASE, component);
    onTestFinished(async () => {
      await started.stop();
    });
    return started;
  };
  const { url } = await start("api");
  await start("controller");
  return url.replace("127.0.0.1", "localhost");
}

describe("docs/install.md", { timeout: 300_000 }, () => {
  it("installs the operator with Helm, resizes a pipe, and removes the operator", async () => {
    const story = commands.filter((command) => !WITHOUT_HELM.test(command));
    expect(story).toHaveLength(21);
    const { cluster, type } = await desk();
    let url = FORWARDED;
    for (const command of story) {
      // After a change, a CRD is not served for a moment, which is shorter than the time to type a command.
      if (/^pipe-scaling /m.test(command))
        await waitFor(() => kubectl(cluster, ["get", "psc", "-A"]), SERVED);
      if (/^kubectl wait --for=create psc/.test(command)) url = await startProcesses(cluster);
      const printed = await type(command.replace(FORWARDED, url));
      if (/get deployment example/.test(command)) expect(printed).toContain('"cpu":"2"');
    }
    expect(await kubectl(cluster, ["get", "crd", "-o", "name"])).toBe("");
  });

  it("installs and removes the operator without Helm", async () => {
    const story = [...first, ...commands.filter((command) => WITHOUT_HELM.test(command)), ...last];
    expect(story).toHaveLength(5);
    const { cluster, type } = await desk();
    for (const command of story) await type(command);
    expect(await kubectl(cluster, ["get", "crd", "-o", "name"])).toBe("");
  });
});
