import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { RETRY_ANNOTATION } from "../../../src/controller/names.ts";
import type { Pod } from "../../../src/kube/objects.ts";
import { collectionPath, DEPLOYMENTS, objectPath, PODS } from "../../../src/kube/paths.ts";
import { apply, kubectl } from "../../cluster/kubectl.ts";
import { serviceAccountKubeconfig } from "../../cluster/service-account.ts";
import { NEVER_READY_LABEL, START_AFTER_ANNOTATION } from "../../cluster/stages.ts";
import { waitFor } from "../../cluster/wait.ts";
import type { PipeOptions } from "../../gen/pipe.ts";
import { accountName, clusterRoleName } from "../../gen/shipped-account.ts";
import { conditionOf, resourcesOf, World } from "../world.ts";
import { Invariants } from "./invariants.ts";

let world: World;
let invariants: Invariants;
beforeEach(async () => {
  world = await World.create();
  invariants = await Invariants.observe(world);
});
afterEach(async () => {
  await world.end();
  await invariants.close();
});

const NAMES = ["pipe-a", "pipe-b", "pipe-c"];
const OF_ONE_CORE = "1 4Gi 4Gi";

/** Pipes that run at one core, with a controller; then four cores are asked for. */
async function askedForFour(
  pipe: Partial<PipeOptions> = {},
  hinder: () => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  invariants.accept(1);
  await world.startController();
  for (const name of NAMES) await world.createPipe({ ...pipe, name, cores: 1 });
  await world.waitForCondition("Ready", "True");
  await hinder();
  invariants.accept(4);
  await world.askFor(4);
}

/** All run at one core, and only the first of them was ever touched. */
async function keptOrPutBack(): Promise<void> {
  const [first, ...others] = await waitFor(
    async () => {
      const pipes = await Promise.all(NAMES.map((name) => world.pipe(name)));
      const isRunning = pipes.every(
        (pipe) => resourcesOf(pipe) === OF_ONE_CORE && pipe.status?.availableReplicas === 1,
      );
      return isRunning ? pipes : undefined;
    },
    { what: "all pipes to run at one core" },
  );
  const revisions = [first, ...others].map(
    (pipe) => pipe?.metadata.annotations?.["deployment.kubernetes.io/revision"],
  );
  expect(revisions.slice(1)).toEqual(["1", "1"]);
}

/** What was in the way is gone, and a person says so. */
async function triedAgain(): Promise<void> {
  await world.patchScaling(undefined, { [RETRY_ANNOTATION]: new Date().toISOString() });
  await invariants.settled(4, { quietMs: 1000 });
  await invariants.end();
}

describe("a size", () => {
  it("whose rollout never completes is taken back, and the other pipes are held back", async () => {
    await askedForFour({
      podAnnotations: { [START_AFTER_ANNOTATION]: "2s" },
      progressDeadlineSeconds: 10,
    });
    const pod = await waitFor(
      async () => {
        const path = collectionPath(PODS, world.pipes);
        const query = { fieldSelector: "status.phase=Pending" };
        const { items } = await world.client.json<{ readonly items: readonly Pod[] }>({ path, query });
        return items[0];
      },
      { what: "the new pod, to fail it" },
    );
    await world.client.json({
      method: "PATCH",
      path: objectPath(PODS, world.pipes, pod.metadata.name),
      patchType: "application/merge-patch+json",
      body: { metadata: { labels: { [NEVER_READY_LABEL]: "true" } } },
    });
    const stalled = await world.waitForCondition("Stalled", "True", "ProgressDeadlineExceeded");
    expect(stalled.status?.failures).toMatchObject([{ size: "4000m/16Gi", attempts: 1 }]);
    await keptOrPutBack();
    await triedAgain();
  });

  const recreated = { strategy: "Recreate" } as const;

  it("that a quota refuses a Recreate pipe, whose old pods are gone, is taken back at once", async () => {
    // Enough for one pipe to have twice what it has, and no more.
    await askedForFour(recreated, async () => {
      await apply(world.cluster, [
        {
          apiVersion: "v1",
          kind: "ResourceQuota",
          metadata: { name: "small", namespace: world.pipes },
          spec: { hard: { "requests.memory": "16Gi" } },
        },
      ]);
      // Before it is counted it refuses everything, in other words.
      const isCounted = () =>
        kubectl(world.cluster, ["get", "quota", "small", "-n", world.pipes, "-o", "jsonpath={.status.hard}"]);
      await waitFor(async () => (await isCounted()) !== "", { what: "the quota to be counted" });
    });
    const stalled = await world.waitForCondition("Stalled", "True", "FailedCreate");
    expect(conditionOf(stalled, "Stalled")?.message).toContain("exceeded quota: small");
    await keptOrPutBack();
    await kubectl(world.cluster, ["delete", "quota", "small", "-n", world.pipes]);
    await triedAgain();
  });

  it("that a LimitRange refuses a Recreate pipe, whose old pods are gone, is taken back at once", async () => {
    await askedForFour(recreated, () =>
      apply(world.cluster, [
        {
          apiVersion: "v1",
          kind: "LimitRange",
          metadata: { name: "small", namespace: world.pipes },
          spec: { limits: [{ type: "Container", max: { memory: "8Gi" } }] },
        },
      ]),
    );
    const stalled = await world.waitForCondition("Stalled", "True", "FailedCreate");
    expect(conditionOf(stalled, "Stalled")?.message).toContain("maximum memory usage per Container is 8Gi");
    await keptOrPutBack();
    await kubectl(world.cluster, ["delete", "limitrange", "small", "-n", world.pipes]);
    await triedAgain();
  });

  it("that an admission policy refuses is told with its words, and no pipe is touched", async () => {
    const name = `at-most-8gi-${world.pipes}`;
    const policy = { apiVersion: "admissionregistration.k8s.io/v1", metadata: { name } };
    const memory = "object.spec.template.spec.containers[0].resources.requests.memory";
    const isAllowed = async () => {
      const amounts = { resources: { requests: { memory: "16Gi" }, limits: { memory: "16Gi" } } };
      await world.client.json({
        method: "PATCH",
        path: objectPath(DEPLOYMENTS, world.pipes, "pipe-a"),
        query: { dryRun: "All" },
        patchType: "application/strategic-merge-patch+json",
        body: { spec: { template: { spec: { containers: [{ name: "pipe", ...amounts }] } } } },
      });
      return true;
    };
    await askedForFour({}, async () => {
      await apply(world.cluster, [
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
              namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": world.pipes } },
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
        { what: "the policy to hold" },
      );
    });
    try {
      const stalled = await world.waitForCondition("Stalled", "True", "Refused");
      expect(conditionOf(stalled, "Stalled")?.message).toContain("no pipe may have more than 8 Gi here");
      await keptOrPutBack();
      expect((await world.pipe("pipe-a")).metadata.generation).toBe(1);
    } finally {
      const kinds = "validatingadmissionpolicybinding,validatingadmissionpolicy";
      await kubectl(world.cluster, ["delete", kinds, name]);
    }
    await waitFor(isAllowed, { what: "the policy to be gone" });
    await triedAgain();
  });

  it("that the controller has no right to give for a while is given when it has it again", async () => {
    const name = clusterRoleName("controller", world.records);
    const kubeconfig = await serviceAccountKubeconfig(
      world.cluster,
      world.records,
      accountName("controller"),
    );
    const mayPatch = ["auth", "can-i", "patch", "deployments.apps", "-n", world.pipes];
    const isAllowed = () => kubectl(world.cluster, mayPatch, { kubeconfig });
    const getBinding = ["get", "clusterrolebinding", name, "-o", "json"];
    const { roleRef, subjects } = JSON.parse(await kubectl(world.cluster, getBinding));
    await askedForFour({}, async () => {
      await kubectl(world.cluster, ["delete", "clusterrolebinding", name]);
      await waitFor(
        () =>
          isAllowed().then(
            () => false,
            () => true,
          ),
        { what: "the right to be gone" },
      );
    });
    await waitFor(
      async () => /^controller_runtime_reconcile_errors_total\{.*\} [1-9]/m.test(await world.scrape()),
      {
        what: "the controller to fail",
      },
    );
    await keptOrPutBack();
    await apply(world.cluster, [
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
