import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { environment as ofProcess } from "@pipe-scaling/local-cluster/environment";
import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { type Finished, run } from "@pipe-scaling/local-cluster/run";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { packNpmPackage, writeNpmPackage } from "../../deploy/release/npm-package.ts";
import { MAIN } from "../support/terminal/program.ts";
import { TestEnvironment } from "../support/test-environment.ts";

let environment: TestEnvironment;
/** Folder with the installed npm package, and with a kubeconfig whose current context is another cluster. */
let folder: string;
let context: string;

const kubeconfig = () => join(folder, "kubeconfig");
const installed = () => join(folder, "prefix", "bin");

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "kubectl-plugin-"));
  await installNpmPackage();
  environment = await TestEnvironment.create("scale");
  const config = JSON.parse(await kubectl(environment.cluster, ["config", "view", "--raw", "-o", "json"]));
  context = config["current-context"];
  config.clusters.push({ name: "other", cluster: { server: "https://127.0.0.1:1" } });
  config.contexts.push({ name: "other", context: { cluster: "other", user: config.users[0].name } });
  writeFileSync(kubeconfig(), JSON.stringify({ ...config, "current-context": "other" }));
  await environment.createPipe({ name: "pipe-a", cores: 2 });
  await environment.startController();
  await environment.waitForCondition("Ready", "True");
});
afterAll(async () => {
  await environment.end();
  rmSync(folder, { recursive: true });
});

async function installNpmPackage(): Promise<void> {
  const npm = { name: "pipe-scaling", version: "0.1.0", source: "https://github.com/acme/operator" };
  writeNpmPackage(npm, dirname(MAIN), join(folder, "npm"));
  const file = packNpmPackage(join(folder, "npm"), folder);
  const flags = ["--global", "--offline", "--no-audit", "--no-fund", "--prefix", join(folder, "prefix")];
  const env = { ...ofProcess, npm_config_cache: join(folder, "cache") };
  const { code, stderr } = await run("npm", ["install", ...flags, file], { env, cwd: folder });
  expect(code, stderr).toBe(0);
}

/** Runs the kubectl of the cluster in a shell whose PATH has the installed package. */
function runKubectl(...args: readonly string[]): Promise<Finished> {
  const { binaries } = environment.cluster;
  const path = [installed(), dirname(process.execPath), binaries.dir, "/usr/bin", "/bin"].join(delimiter);
  return run(binaries.path("kubectl"), args, {
    env: { PATH: path, HOME: folder, KUBECONFIG: kubeconfig() },
  });
}

describe("kubectl pipes", () => {
  it("is a plugin that kubectl lists without a warning", async () => {
    const { code, stdout, stderr } = await runKubectl("plugin", "list");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain(`${join(installed(), "kubectl-pipes")}\n`);
    expect(stdout).not.toContain("complete-pipes");
  });

  it.each(["before", "after"])("status takes the options of kubectl %s the command", async (place) => {
    const command = ["status", "orders", "--watch"];
    const options = ["--context", context, "-n", environment.records, "--kubeconfig", kubeconfig()];
    const words = place === "before" ? [...options, ...command] : [...command, ...options];
    const { code, stdout, stderr } = await runKubectl("pipes", ...words);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/orders.*2 cpu \/ 8 Gi/);
  });

  it("uses the current context of the kubeconfig by default", async () => {
    const { code, stderr } = await runKubectl("pipes", "status");
    expect(code).toBe(1);
    expect(stderr).toContain("127.0.0.1:1");
  });

  it("doctor and admin work on the records of the namespace", async () => {
    const options = ["--context", context, "--namespace", environment.records, "-o", "json"];
    const checked = await runKubectl("pipes", "doctor", ...options);
    expect(JSON.parse(checked.stdout).results).toContainEqual(
      expect.objectContaining({ message: "The records are well-formed: organizations 1, services 1." }),
    );
    const { code, stdout } = await runKubectl("pipes", "admin", "service", "list", ...options);
    expect(code).toBe(0);
    expect(stdout).toContain(environment.serviceId);
  });

  it("ends with the exit code of the command", async () => {
    const { code, stderr } = await runKubectl("pipes", "stats");
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: "Unknown command 'stats'. Did you mean status?\nSee kubectl pipes --help.\n",
    });
  });
});

describe("the completion of kubectl", () => {
  it.each<readonly [words: readonly string[], stdout: string]>([
    [["st"], "status\tshow the progress of rescales\n:4\n"],
    [["--context", "x", "doc"], "doctor\tcheck the installation and its records\n:4\n"],
    [["status", "--kubeconfig", ""], ":0\n"],
  ])("offers the words of kubectl pipes after %j", async (words, stdout) => {
    expect(await runKubectl("__complete", "pipes", ...words)).toMatchObject({ code: 0, stdout });
  });

  it("offers the plugin itself", async () => {
    const { stdout } = await runKubectl("__complete", "pip");
    expect(stdout).toMatch(/^pipes\t/);
  });
});
