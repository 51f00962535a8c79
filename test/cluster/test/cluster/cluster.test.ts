import { statSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import type { Cluster } from "../../cluster.ts";
import { environment } from "../../environment.ts";
import { apply, KubectlError, kubectl } from "../../kubectl.ts";
import { COMPONENTS } from "../../kwokctl.ts";
import { serviceAccountKubeconfig } from "../../service-account.ts";
import { NEVER_READY_LABEL, START_AFTER_ANNOTATION, STOP_AFTER_ANNOTATION } from "../../stages.ts";
import { sharedCluster } from "../../vitest.ts";
import { waitFor } from "../../wait.ts";
import { startNode } from "../support/children.ts";
import { isLoopback, listeningAddresses } from "../support/listeners.ts";

const MAIN = new URL("../../main.ts", import.meta.url);
const NAMESPACE = "cluster-test";

let cluster: Cluster;

beforeAll(async () => {
  cluster = await sharedCluster();
  await apply(cluster, [{ apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } }]);
});

function deployment(name: string, labels: Record<string, string>, annotations: Record<string, string> = {}) {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace: NAMESPACE },
    spec: {
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name, ...labels }, annotations },
        spec: { containers: [{ name: "pipe", image: "pipe" }] },
      },
    },
  };
}

/** A value of an object, or of the first one that a selector finds, in the format of jsonpath; "" if there is none. */
async function value(object: string, path: string): Promise<string> {
  const query = [...object.split(" "), "--ignore-not-found", "-o", `jsonpath=${path}`];
  return await kubectl(cluster, ["-n", NAMESPACE, "get", ...query]);
}

async function becomes(object: string, path: string, wanted: string): Promise<void> {
  await waitFor(
    async () => {
      const seen = await value(object, path);
      if (seen !== wanted) throw new Error(`it is "${seen}"`);
      return true;
    },
    { what: `${path} of ${object} to be "${wanted}"` },
  );
}

describe("the cluster", () => {
  test("runs all components, which listen only on 127.0.0.1", () => {
    const pids = COMPONENTS.map((component) => cluster.pid(component));
    for (const pid of pids) expect(listeningAddresses([pid])).not.toEqual([]);
    expect(listeningAddresses(pids).filter((address) => !isLoopback(address))).toEqual([]);
  });

  test("has a folder that only this user can read, with a log of each component", () => {
    expect(statSync(cluster.dir).mode & 0o077).toBe(0);
    for (const component of COMPONENTS) {
      expect(statSync(join(cluster.dir, "logs", `${component}.log`)).size).toBeGreaterThan(0);
    }
  });

  test("allows a ServiceAccount exactly what its RBAC rules allow", async () => {
    await apply(cluster, [
      { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "reader", namespace: NAMESPACE } },
      {
        apiVersion: "rbac.authorization.k8s.io/v1",
        kind: "Role",
        metadata: { name: "reader", namespace: NAMESPACE },
        rules: [{ apiGroups: [""], resources: ["configmaps"], verbs: ["list"] }],
      },
      {
        apiVersion: "rbac.authorization.k8s.io/v1",
        kind: "RoleBinding",
        metadata: { name: "reader", namespace: NAMESPACE },
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "reader" },
        subjects: [{ kind: "ServiceAccount", name: "reader", namespace: NAMESPACE }],
      },
    ]);
    const kubeconfig = await serviceAccountKubeconfig(cluster, NAMESPACE, "reader");
    expect(statSync(kubeconfig).mode & 0o077).toBe(0);
    const isListed = async () =>
      (await kubectl(cluster, ["get", "configmaps", "-o", "name"], { kubeconfig })).includes(
        "kube-root-ca.crt",
      );
    await waitFor(isListed, { what: "the permission of the account, and the certificate of the namespace" });
    const secrets = kubectl(cluster, ["get", "secrets"], { kubeconfig });
    await expect(secrets).rejects.toThrow(
      /User "system:serviceaccount:cluster-test:reader" cannot list resource "secrets"/,
    );
    await expect(secrets).rejects.toBeInstanceOf(KubectlError);
  });

  test("names a ServiceAccount that does not exist", async () => {
    await expect(serviceAccountKubeconfig(cluster, NAMESPACE, "nobody")).rejects.toThrow(
      'no token for ServiceAccount cluster-test/nobody: 404 serviceaccounts "nobody" not found',
    );
  });

  test("has the default admission plugins", async () => {
    const gone = deployment("nowhere", {});
    const nowhere = { ...gone, metadata: { ...gone.metadata, namespace: "nowhere" } };
    await expect(apply(cluster, [nowhere])).rejects.toThrow('namespaces "nowhere" not found');
    await apply(cluster, [
      {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name: "lone", namespace: NAMESPACE },
        spec: { containers: [{ name: "a", image: "a" }] },
      },
    ]);
    // These fields were set by ServiceAccount, DefaultTolerationSeconds and Priority.
    expect(
      await value(
        "pod/lone",
        "{.spec.serviceAccountName} {.spec.tolerations[0].tolerationSeconds} {.spec.priority}",
      ),
    ).toBe("default 300 0");
  });

  test("prints its environment for a shell", async () => {
    const child = startNode(MAIN, ["env", "--name", cluster.name], environment);
    expect(await child.waitForEnd()).toBe(0);
    expect(child.stdout).toBe(
      `export KUBECONFIG='${cluster.kubeconfig}'\nexport PATH='${cluster.binaries.dir}':"$PATH"\n`,
    );
  });
});

describe("pods", () => {
  const READY = "{.status.readyReplicas}";

  test("become ready late or never, if their template has the annotation or label", async () => {
    const [never, slow] = ["deployment/never", "deployment/slow"];
    await apply(cluster, [
      deployment("never", { [NEVER_READY_LABEL]: "true" }),
      deployment("slow", {}, { [START_AFTER_ANNOTATION]: "1h" }),
    ]);
    const waiting = "{.items[0].status.containerStatuses[0].state.waiting.reason}";
    await becomes("pods -l app=never", waiting, "CrashLoopBackOff");
    await becomes(slow, "{.status.unavailableReplicas}", "1");
    // Another pod, which is created later, becomes ready first.
    await apply(cluster, [deployment("quick", {})]);
    await becomes("deployment/quick", READY, "1");
    expect(await value(never, READY)).toBe("");
    expect(await value(slow, READY)).toBe("");
  });

  test("fail with a label, and recover without it", async () => {
    await apply(cluster, [deployment("frail", {})]);
    await becomes("deployment/frail", READY, "1");
    const label = (change: string) =>
      kubectl(cluster, ["-n", NAMESPACE, "label", "pods", "-l", "app=frail", change]);
    await label(`${NEVER_READY_LABEL}=true`);
    await becomes("deployment/frail", READY, "");
    await label(`${NEVER_READY_LABEL}-`);
    await becomes("deployment/frail", READY, "1");
  });

  test("end immediately, or later if their template has the annotation", async () => {
    await apply(cluster, [
      deployment("brief", {}),
      deployment("lingering", {}, { [STOP_AFTER_ANNOTATION]: "1h" }),
    ]);
    await becomes("deployment/brief", READY, "1");
    await becomes("deployment/lingering", READY, "1");
    await kubectl(cluster, ["-n", NAMESPACE, "delete", "deployment", "brief", "lingering"]);
    await becomes("pods -l app=brief", "{.items[*].metadata.name}", "");
    const isEnding = async () =>
      (await value("pods -l app=lingering", "{.items[0].metadata.deletionTimestamp}")) !== "";
    await waitFor(isEnding, { what: "the other pod to be deleted" });
    expect(await value("pods -l app=lingering", "{.items[*].metadata.name}")).not.toBe("");
  });

  test("of a Job succeed as soon as they have started", async () => {
    const spec = { restartPolicy: "Never", containers: [{ name: "a", image: "a" }] };
    await apply(cluster, [
      {
        apiVersion: "batch/v1",
        kind: "Job",
        metadata: { name: "task", namespace: NAMESPACE },
        spec: { template: { spec } },
      },
    ]);
    await becomes("pods -l job-name=task", "{.items[*].status.phase}", "Succeeded");
    await becomes("job/task", "{.status.succeeded}", "1");
  });

  test("are not scheduled if they fit on no node", async () => {
    const resources = { requests: { cpu: "1000000" } };
    const spec = { containers: [{ name: "a", image: "a", resources }] };
    await apply(cluster, [
      { apiVersion: "v1", kind: "Pod", metadata: { name: "huge", namespace: NAMESPACE }, spec },
    ]);
    await becomes("pod/huge", "{.status.conditions[?(@.type=='PodScheduled')].reason}", "Unschedulable");
  });
});
