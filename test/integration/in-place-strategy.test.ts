import { apply, kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { RESIZE_OUTCOME_ANNOTATION } from "@pipe-scaling/local-cluster/resize-stages";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  CONTAINER_ANNOTATION,
  DATABASE_TYPE,
  SERVICE_LABEL,
  TYPE_LABEL,
} from "../../src/controller/names.ts";
import { collectionPath, PODS } from "../../src/kube/paths.ts";
import type { Pod, TemplateContainer } from "../../src/kube/pods.ts";
import { pipeDeployment } from "../support/fixtures/pipe.ts";
import { injectedContainer, mutatingPolicy } from "../support/mutating-policy.ts";
import { resourcesOf, TestEnvironment } from "../support/test-environment.ts";
import { restrictController } from "./in-place-account.ts";

const PROXY = "istio-proxy";

describe("the controller", () => {
  let environment: TestEnvironment;
  beforeEach(async () => {
    environment = await TestEnvironment.create();
    await restrictController(environment);
  });
  afterEach(() => environment.end());

  /** Starts a pipe of one core and a controller. @returns the UIDs of its pods */
  async function started(
    container: Partial<TemplateContainer>,
    podAnnotations: Readonly<Record<string, string>> = {},
    controller: Parameters<TestEnvironment["startController"]> = [{ resizeStrategy: "InPlaceOrRollout" }],
  ): Promise<readonly string[]> {
    const podLabels = { [SERVICE_LABEL]: environment.serviceId, [TYPE_LABEL]: DATABASE_TYPE };
    const identity = { name: "pipe-a", namespace: environment.pipes, serviceId: environment.serviceId };
    const made = pipeDeployment({ ...identity, cores: 1, podLabels, podAnnotations });
    const containers = made.spec.template.spec.containers.map((each) => ({ ...each, ...container }));
    const template = { ...made.spec.template, spec: { ...made.spec.template.spec, containers } };
    await apply(environment.cluster, [{ ...made, spec: { ...made.spec, template } }]);
    await environment.startController(...controller);
    await environment.waitForCondition("Ready", "True");
    await waitFor(
      async () => (await pods()).every(({ status }) => status?.containerStatuses?.[0]?.resources),
      { what: "the pods to run" },
    );
    return uids();
  }

  async function pods(): Promise<readonly Pod[]> {
    const { items } = await environment.client.json<{ readonly items: readonly Pod[] }>({
      path: collectionPath(PODS, environment.pipes),
    });
    return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  }

  async function uids(): Promise<readonly string[]> {
    return (await pods()).map(({ metadata }) => metadata.uid).sort();
  }

  /** Waits until the pipe waits for this reason. */
  function waiting(reason: string) {
    const read = async () => {
      const { status } = await environment.scaling();
      return status?.pipes?.pending?.find((each) => each.state === "Waiting" && each.reason === reason);
    };
    return waitFor(read, { what: `the pipe to wait because of ${reason}` });
  }

  /** A service mesh, which adds a container to each pod. */
  async function injectContainers(): Promise<void> {
    const { pipes, cluster, client } = environment;
    await apply(cluster, mutatingPolicy({ name: pipes, namespace: pipes, ...injectedContainer(PROXY) }));
    environment.onEnd(() =>
      kubectl(cluster, ["delete", "mutatingadmissionpolicy,mutatingadmissionpolicybinding", pipes]),
    );
    const request = {
      method: "POST",
      path: collectionPath(PODS, pipes),
      query: { dryRun: "All" },
      body: { metadata: { name: "tried" }, spec: { containers: [{ name: "a", image: "a" }] } },
    } as const;
    await waitFor(async () => JSON.stringify(await client.json(request)).includes(PROXY), {
      what: "the API server to apply the policy",
    });
  }

  it.each<[string, Partial<TemplateContainer>]>([
    [
      "SizeFromEnvironment",
      { env: [{ name: "GOMEMLIMIT", valueFrom: { resourceFieldRef: { resource: "limits.memory" } } }] },
    ],
    ["SizeFromPercentage", { args: ["-XX:MaxRAMPercentage=75"] }],
  ])(
    "rolls out a pipe whose program reads its size once, unless the strategy is InPlace (%s)",
    async (reason, container) => {
      const before = await started(container);
      await environment.patchScaling({ strategy: "InPlace" });
      await environment.requestSize(2);
      await waiting(reason);
      expect(await uids()).toEqual(before);
      await environment.patchScaling({ strategy: "InPlaceOrRollout" });
      const { status } = await environment.waitForCondition("Ready", "True");
      expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("2 8Gi 8Gi");
      expect(status?.pipes).toMatchObject({ resizedBy: { "pipe-a": "Rollout" }, fallbacks: [{ reason }] });
      expect(await uids()).not.toEqual(before);
    },
  );

  it("leaves a pod with a deferred resize alone with the strategy InPlace, and reports it as failed later", async () => {
    const before = await started({}, { [RESIZE_OUTCOME_ANNOTATION]: "Deferred" }, [
      { resizeStrategy: "InPlace", rolloutTimeoutMs: 3000 },
      { timeouts: { deferredMs: 500 } },
    ]);
    await environment.requestSize(2);
    await waiting("Deferred");
    const { status } = await environment.waitForCondition("Stalled", "True", "NotResizedInPlace");
    expect(status?.failures).toMatchObject([{ pipe: "pipe-a", reason: "NotResizedInPlace" }]);
    expect(await uids()).toEqual(before);
    expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("1 4Gi 4Gi");
    // The kubelet has room.
    for (const { metadata } of await pods())
      await kubectl(environment.cluster, [
        ...["annotate", "pod", metadata.name, "--namespace", environment.pipes],
        `${RESIZE_OUTCOME_ANNOTATION}-`,
      ]);
    await environment.waitForCondition("Ready", "True");
    expect(await uids()).toEqual(before);
    expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("2 8Gi 8Gi");
  });

  it("does not resize pods with an injected container before the pod template names the container", async () => {
    await injectContainers();
    const before = await started({});
    expect((await pods())[0]?.spec.containers).toHaveLength(2);
    await environment.patchScaling({ strategy: "InPlace" });
    await environment.requestSize(2);
    const { message } = await waiting("ContainerNotNamed");
    expect(message).toContain(`${CONTAINER_ANNOTATION}=pipe`);
    expect(await uids()).toEqual(before);
    const annotations = { [CONTAINER_ANNOTATION]: "pipe" };
    await environment.patchPipe("pipe-a", { spec: { template: { metadata: { annotations } } } });
    const { status } = await environment.waitForCondition("Ready", "True");
    expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("2 8Gi 8Gi");
    expect(status?.pipes).toMatchObject({ resizedBy: { "pipe-a": "InPlace" } });
  });

  it("rolls out a pipe with an injected container that no annotation names", async () => {
    await injectContainers();
    await started({});
    await environment.requestSize(2);
    const { status } = await environment.waitForCondition("Ready", "True");
    expect(status?.pipes).toMatchObject({
      resizedBy: { "pipe-a": "Rollout" },
      fallbacks: [{ reason: "ContainerNotNamed" }],
    });
  });
});
