import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { serviceAccountKubeconfig } from "@pipe-scaling/local-cluster/service-account";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, beforeEach, describe, expect, inject, it, onTestFinished } from "vitest";
import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../src/controller/names.ts";
import { errorResponse, FaultyProxy } from "../integration/faults/faulty-proxy.ts";
import { accountName, clusterRoleName, recordsRoleName } from "../support/fixtures/shipped-account.ts";
import { restrictToNamespaces } from "../support/restrict-to-namespaces.ts";
import { TestEnvironment } from "../support/test-environment.ts";

const MAIN = inject("program");
const run = promisify(execFile);

describe("controller --dry-run", () => {
  let environment: TestEnvironment;
  beforeEach(async () => {
    environment = await TestEnvironment.create("scale");
  });
  afterEach(() => environment.end());

  async function dryRun(namespaces = environment.pipes): Promise<{ stdout: string; stderr: string }> {
    const { cluster, records } = environment;
    const kubeconfig = await serviceAccountKubeconfig(cluster, records, accountName("controller"));
    const where = ["--kubeconfig", kubeconfig, "--namespace", records, "--pipe-namespaces", namespaces];
    return run(process.execPath, [MAIN, "controller", "--dry-run", ...where], { env: {}, timeout: 60_000 });
  }

  /** Takes the permissions for these resources from the controller. */
  async function forbid(...resources: readonly string[]): Promise<void> {
    const { cluster, records, pipes } = environment;
    const name = clusterRoleName("controller", records);
    const role: { readonly rules: readonly { readonly resources: readonly string[] }[] } = JSON.parse(
      await kubectl(cluster, ["get", "clusterrole", name, "--output", "json"]),
    );
    const rules = role.rules.filter((rule) => !rule.resources.some((each) => resources.includes(each)));
    const patch = JSON.stringify({ rules });
    await kubectl(cluster, ["patch", "clusterrole", name, "--type", "merge", "--patch", patch]);
    const kubeconfig = await serviceAccountKubeconfig(cluster, records, accountName("controller"));
    const mayList = ["auth", "can-i", "list", `${resources[0]}`, "--namespace", pipes];
    const isForbidden = () =>
      kubectl(cluster, mayList, { kubeconfig }).then(
        () => false,
        () => true,
      );
    await waitFor(isForbidden, { what: "the removal of the permissions to take effect" });
  }

  /** Objects in the environment's namespaces that a controller could have created. */
  async function objects(): Promise<string[]> {
    const found = [environment.pipes, environment.records].map((namespace) =>
      kubectl(environment.cluster, ["get", "psc,leases", "-n", namespace, "-o", "name"]),
    );
    return (await Promise.all(found)).flatMap((text) => text.split("\n")).filter((name) => name !== "");
  }

  it("prints the first reconciliation of a controller, and writes nothing", async () => {
    // A pipe without replicas proves nothing about its size.
    await environment.createPipe({ name: "pipe-c", cores: 2, replicas: 0 });
    const podLabels = { [SERVICE_LABEL]: environment.serviceId, [TYPE_LABEL]: DATABASE_TYPE };
    for (const name of ["pipe-a", "pipe-b"]) {
      // Pods with the labels can be resized in place, so the pipes need no request of a size.
      await environment.createPipe({ name, cores: 1, podLabels });
      // Both must run, because a running pipe would be resized before a pending one.
      await waitFor(async () => (await environment.pipe(name)).status?.availableReplicas === 1, {
        what: `${name} to run`,
      });
    }
    const { stdout, stderr } = await dryRun();
    const lines = stdout.split("\n").map((line) => line.split(/ {2,}/));
    const about = [environment.serviceId, environment.pipes];
    expect(lines).toEqual([
      ["SERVICE", "NAMESPACE", "PIPE", "SIZE", "DESIRED", "ACTION"],
      [...about, "-", "-", "-", "create its PipeScaling with 2 cpu / 8 Gi"],
      [...about, "pipe-a", "1 cpu / 4 Gi", "2 cpu / 8 Gi", "resize it now"],
      [
        ...about,
        "pipe-b",
        "1 cpu / 4 Gi",
        "2 cpu / 8 Gi",
        "resize it later: it waits for pipe-a to prove the size",
      ],
      [""],
    ]);
    expect(stderr).toBe("Dry run: nothing was written. Services: 1, pipes: 3.\n");
    const { generation, annotations } = (await environment.pipe("pipe-a")).metadata;
    expect({
      generation,
      ours: Object.keys(annotations ?? {}).filter((key) => key.startsWith("pipes.")),
    }).toEqual({
      generation: 1,
      ours: [],
    });
    expect(await objects()).toEqual([]);
  });

  it("prints that there is nothing to do if every pipe has its size", async () => {
    const stop = await environment.startController();
    await environment.createPipe({ name: "pipe-a", cores: 1 });
    await environment.waitForCondition("Ready", "True");
    await stop();
    expect(await dryRun()).toEqual({
      stdout: "",
      stderr: "Dry run: nothing was written. Services: 1, pipes: 1. There is nothing to do.\n",
    });
  });

  it("retries if the API server is too busy at first", async () => {
    const proxy = await FaultyProxy.start(environment.cluster);
    onTestFinished(() => proxy.stop());
    proxy.handle = ({ resource }) =>
      resource === "deployments" && proxy.count("watch", "deployments", "respond") === 0
        ? errorResponse(429, "TooManyRequests", { "retry-after": "1" })
        : undefined;
    const account = await serviceAccountKubeconfig(
      environment.cluster,
      environment.records,
      accountName("controller"),
    );
    const where = ["--kubeconfig", proxy.kubeconfig(account), "--namespace", environment.records];
    const scope = ["--pipe-namespaces", environment.pipes];
    const { stderr } = await run(process.execPath, [MAIN, "controller", "--dry-run", ...where, ...scope]);
    expect(stderr).toBe("Dry run: nothing was written. Services: 1, pipes: 0. There is nothing to do.\n");
    expect(proxy.count("watch", "deployments", "respond")).toBe(1);
  });

  it("ends with an error message if it lacks permissions", async () => {
    await kubectl(environment.cluster, [
      "delete",
      "role",
      recordsRoleName("controller"),
      "-n",
      environment.records,
    ]);
    await expect(dryRun()).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/configmaps.*forbidden/),
    });
  });

  it("leaves out a namespace that it may not read, and says so", async () => {
    const { pipes, records } = environment;
    await restrictToNamespaces("controller", environment, [pipes]);
    await environment.createPipe({ name: "pipe-a", cores: 1, replicas: 0 });
    const { stderr } = await dryRun(`${pipes},${records}`);
    expect(stderr).toMatch(
      new RegExp(`^Left out the namespace ${records}: deployments.apps is forbidden: .*\\n.*pipes: 1\\.\\n$`),
    );
  });

  it("does without the permissions for pods and StatefulSets, in one namespace and in several", async () => {
    await environment.createPipe({ name: "pipe-a", cores: 1, replicas: 0 });
    await forbid("pods", "statefulsets");
    for (const namespaces of [environment.pipes, `${environment.pipes},${environment.records}`])
      expect((await dryRun(namespaces)).stderr).toContain("Services: 1, pipes: 1.");
  });

  it.each(["pods", "statefulsets"])(
    "ends with an error message if it lacks the permissions for %s and for autoscalers, in one namespace and in several",
    async (optional) => {
      await forbid(optional, "horizontalpodautoscalers");
      for (const namespaces of [environment.pipes, `${environment.pipes},${environment.records}`]) {
        await expect(dryRun(namespaces)).rejects.toMatchObject({
          code: 1,
          stderr: expect.stringMatching(/horizontalpodautoscalers.*forbidden/),
        });
      }
    },
  );
});
