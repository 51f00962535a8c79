import { apply, kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { serviceAccountKubeconfig } from "@pipe-scaling/local-cluster/service-account";
import { NEVER_READY_LABEL, START_AFTER_ANNOTATION } from "@pipe-scaling/local-cluster/stages";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { describe, expect } from "vitest";
import { RETRY_ANNOTATION, REVISION_ANNOTATION } from "../../../src/controller/names.ts";
import { collectionPath, DEPLOYMENTS, objectPath, PODS } from "../../../src/kube/paths.ts";
import type { Pod } from "../../../src/kube/pods.ts";
import type { Deployment } from "../../../src/kube/workloads.ts";
import { accountName, clusterRoleName } from "../../support/fixtures/shipped-account.ts";
import { limitMemory, setQuota } from "../../support/limits.ts";
import { conditionOf, resourcesOf } from "../../support/test-environment.ts";
import { it as base } from "./fixtures.ts";

const NAMES = ["pipe-a", "pipe-b", "pipe-c"];
const OF_ONE_CORE = "1 4Gi 4Gi";

const PIPES = NAMES.map((name) => ({ name }));
const RECREATED = PIPES.map((pipe) => ({ ...pipe, strategy: "Recreate" as const }));

const it = base
  /** Checks that all pipes run one core, and that at most the first was restarted. */
  .extend("expectRestored", ({ environment }) => async (): Promise<void> => {
    const restored = async () => {
      const pipes = await Promise.all(NAMES.map((name) => environment.pipe(name)));
      const isRestored = (pipe: Deployment) =>
        resourcesOf(pipe) === OF_ONE_CORE && pipe.status?.availableReplicas === 1;
      return pipes.every(isRestored) ? pipes : undefined;
    };
    const pipes = await waitFor(restored, { what: "all pipes to run one core" });
    const revisions = pipes.map(({ metadata }) => metadata.annotations?.[REVISION_ANNOTATION]);
    expect(revisions.slice(1)).toEqual(["1", "1"]);
  })
  /** Requests a retry after the cause was removed. */
  .extend("retry", ({ environment, invariants }) => async (): Promise<void> => {
    await environment.patchScaling(undefined, { [RETRY_ANNOTATION]: new Date().toISOString() });
    await invariants.settled(4, { quietMs: 1000 });
    await invariants.end();
  });

describe("a size", () => {
  it("is rolled back if its rollout never completes, and the other pipes wait", async ({
    environment,
    startPipes,
    requestSize,
    expectRestored,
    retry,
  }) => {
    const podAnnotations = { [START_AFTER_ANNOTATION]: "2s" };
    await startPipes(PIPES.map((pipe) => ({ ...pipe, podAnnotations, progressDeadlineSeconds: 10 })));
    await requestSize(4);
    const pod = await waitFor(
      async () => {
        const path = collectionPath(PODS, environment.pipes);
        const query = { fieldSelector: "status.phase=Pending" };
        const { items } = await environment.client.json<{ readonly items: readonly Pod[] }>({ path, query });
        return items[0];
      },
      { what: "the new pod" },
    );
    await environment.client.json({
      method: "PATCH",
      path: objectPath(PODS, environment.pipes, pod.metadata.name),
      patchType: "application/merge-patch+json",
      body: { metadata: { labels: { [NEVER_READY_LABEL]: "true" } } },
    });
    const stalled = await environment.waitForCondition("Stalled", "True", "ProgressDeadlineExceeded");
    expect(stalled.status?.failures).toMatchObject([
      { size: { replicaCpuMillicores: 4000, replicaMemoryGb: 16, summary: "4 cpu / 16 Gi" }, attempts: 1 },
    ]);
    await expectRestored();
    await retry();
  });

  it("is rolled back immediately if a quota rejects the new pods of a Recreate pipe whose old pods the controller does not see", async ({
    environment,
    startPipes,
    requestSize,
    expectRestored,
    retry,
  }) => {
    await startPipes(RECREATED);
    // Enough for one pipe of twice the size.
    await setQuota(environment, { "requests.memory": "16Gi" });
    await requestSize(4);
    const stalled = await environment.waitForCondition("Stalled", "True", "FailedCreate");
    expect(conditionOf(stalled, "Stalled")?.message).toContain("exceeded quota: small");
    await expectRestored();
    await kubectl(environment.cluster, ["delete", "quota", "small", "-n", environment.pipes]);
    await retry();
  });

  it("is rolled back immediately if a LimitRange rejects the new pods of a Recreate pipe whose old pods the controller does not see", async ({
    environment,
    startPipes,
    requestSize,
    expectRestored,
    retry,
  }) => {
    await startPipes(RECREATED);
    await limitMemory(environment, "8Gi");
    await requestSize(4);
    const stalled = await environment.waitForCondition("Stalled", "True", "FailedCreate");
    expect(conditionOf(stalled, "Stalled")?.message).toContain("maximum memory usage per Container is 8Gi");
    await expectRestored();
    await kubectl(environment.cluster, ["delete", "limitrange", "limit", "-n", environment.pipes]);
    await retry();
  });

  it("is reported for each pipe with the message of the admission policy that rejects it, and no pipe is restarted", async ({
    environment,
    startPipes,
    requestSize,
    expectRestored,
    retry,
  }) => {
    const name = `at-most-8gi-${environment.pipes}`;
    const policy = { apiVersion: "admissionregistration.k8s.io/v1", metadata: { name } };
    const memory = "object.spec.template.spec.containers[0].resources.requests.memory";
    const isAllowed = async () => {
      const amounts = { resources: { requests: { memory: "16Gi" }, limits: { memory: "16Gi" } } };
      await environment.client.json({
        method: "PATCH",
        path: objectPath(DEPLOYMENTS, environment.pipes, "pipe-a"),
        query: { dryRun: "All" },
        patchType: "application/strategic-merge-patch+json",
        body: { spec: { template: { spec: { containers: [{ name: "pipe", ...amounts }] } } } },
      });
      return true;
    };
    await startPipes(PIPES);
    await apply(environment.cluster, [
      {
        ...policy,
        kind: "ValidatingAdmissionPolicy",
        spec: {
          matchConstraints: {
            resourceRules: [
              {
                apiGroups: ["apps"],
                apiVersions: ["v1"],
                operations: ["UPDATE"],
                resources: ["deployments"],
              },
            ],
          },
          validations: [
            {
              expression: `quantity(${memory}).compareTo(quantity('8Gi')) <= 0`,
              message: "no pipe may have more than 8 Gi here",
            },
          ],
        },
      },
      {
        ...policy,
        kind: "ValidatingAdmissionPolicyBinding",
        spec: {
          policyName: name,
          validationActions: ["Deny"],
          matchResources: {
            namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": environment.pipes } },
          },
        },
      },
    ]);
    await waitFor(
      () =>
        isAllowed().then(
          () => false,
          () => true,
        ),
      { what: "the policy to take effect" },
    );
    await requestSize(4);
    try {
      const stalled = await environment.waitForCondition("Stalled", "True", "Refused");
      const message = expect.stringContaining("no pipe may have more than 8 Gi here");
      expect(stalled.status?.failures).toMatchObject(
        NAMES.map((pipe) => ({ pipe, reason: "Refused", message })),
      );
      expect(conditionOf(stalled, "Stalled")?.message).toEqual(message);
      expect(conditionOf(stalled, "Stalled")?.message).toContain("Also failed: pipe-b, pipe-c.");
      await expectRestored();
      for (const name of NAMES)
        expect((await environment.pipe(name)).metadata.annotations?.[REVISION_ANNOTATION]).toBe("1");
    } finally {
      const kinds = "validatingadmissionpolicybinding,validatingadmissionpolicy";
      await kubectl(environment.cluster, ["delete", kinds, name]);
    }
    await waitFor(isAllowed, { what: "the removal of the policy to take effect" });
    await retry();
  });

  it("is applied as soon as a missing permission of the controller is restored", async ({
    environment,
    invariants,
    startPipes,
    requestSize,
    expectRestored,
  }) => {
    const name = clusterRoleName("controller", environment.records);
    const kubeconfig = await serviceAccountKubeconfig(
      environment.cluster,
      environment.records,
      accountName("controller"),
    );
    const mayPatch = ["auth", "can-i", "patch", "deployments.apps", "-n", environment.pipes];
    const isAllowed = () => kubectl(environment.cluster, mayPatch, { kubeconfig });
    const getBinding = ["get", "clusterrolebinding", name, "-o", "json"];
    const { roleRef, subjects } = JSON.parse(await kubectl(environment.cluster, getBinding));
    await startPipes(PIPES);
    await kubectl(environment.cluster, ["delete", "clusterrolebinding", name]);
    await waitFor(
      () =>
        isAllowed().then(
          () => false,
          () => true,
        ),
      { what: "the removal of the permission to take effect" },
    );
    await requestSize(4);
    await waitFor(
      async () => /^controller_runtime_reconcile_errors_total\{.*\} [1-9]/m.test(await environment.scrape()),
      {
        what: "the controller to fail",
      },
    );
    await expectRestored();
    await apply(environment.cluster, [
      {
        apiVersion: "rbac.authorization.k8s.io/v1",
        kind: "ClusterRoleBinding",
        metadata: { name },
        roleRef,
        subjects,
      },
    ]);
    await invariants.settled(4, { quietMs: 1000 });
    await invariants.end();
  });
});
