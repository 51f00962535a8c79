import { apply } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../src/controller/names.ts";
import { API_VERSION, KIND } from "../../src/crd/names.ts";
import { collectionPath, PODS } from "../../src/kube/paths.ts";
import type { Container, Pod } from "../../src/kube/pods.ts";
import { pipeDeployment } from "../support/fixtures/pipe.ts";
import { resourcesOf, TestEnvironment } from "../support/test-environment.ts";
import { restrictController } from "./in-place-account.ts";

const TWO: Container["resources"] = { requests: { cpu: "2", memory: "8Gi" }, limits: { memory: "8Gi" } };

describe("running pipes whose resources are no valid size", () => {
  const ODD: Container["resources"] = {
    requests: { cpu: "1500m", memory: "5Gi" },
    limits: { memory: "6500Mi" },
  };
  let environment: TestEnvironment;
  beforeAll(async () => {
    environment = await TestEnvironment.create();
    await restrictController(environment);
  });
  afterAll(() => environment?.end());

  /** @returns the UIDs of the pods of a pipe that run and report their resources, by its name */
  async function uidsOf(name: string): Promise<readonly string[]> {
    const { items } = await environment.client.json<{ readonly items: readonly Pod[] }>({
      path: collectionPath(PODS, environment.pipes),
      query: { labelSelector: `app=${name}` },
    });
    const running = items.filter(({ status }) => status?.containerStatuses?.[0]?.resources);
    return running.map(({ metadata }) => metadata.uid).sort();
  }

  function pending(name: string) {
    const read = async () => {
      const { status } = await environment.scaling();
      return status?.pipes?.pending?.find((each) => each.name === name && each.reason === "SizeNotRequested");
    };
    return waitFor(read, { what: `${name} to wait for a request` });
  }

  it("get the size that holds them in place, or wait for a request if that needs a restart", async () => {
    const { pipes: namespace, serviceId, cluster } = environment;
    const podLabels = { [SERVICE_LABEL]: serviceId, [TYPE_LABEL]: DATABASE_TYPE };
    const common = { namespace, serviceId, resources: ODD, podLabels };
    await apply(cluster, [
      pipeDeployment({ ...common, name: "plain", replicas: 2 }),
      pipeDeployment({ ...common, name: "jvm", strategy: "Recreate", args: ["-XX:MaxRAMPercentage=75"] }),
    ]);
    await waitFor(async () => [...(await uidsOf("plain")), ...(await uidsOf("jvm"))].length === 3, {
      what: "the pods to run",
    });
    const [plain, jvm] = await Promise.all([uidsOf("plain"), uidsOf("jvm")]);
    await environment.startController({ resizeStrategy: "InPlaceOrRollout" });
    await pending("jvm");
    await waitFor(async () => resourcesOf(await environment.pipe("plain")) === "2 8Gi 8Gi", {
      what: "the template to have the size",
    });
    expect(await uidsOf("plain")).toEqual(plain);
    expect(await uidsOf("jvm")).toEqual(jvm);
    expect(resourcesOf(await environment.pipe("jvm"))).toBe("1500m 5Gi 6500Mi");

    // The present size, as the API requests it.
    const { metadata, spec } = await environment.scaling();
    const { name } = metadata;
    await apply(cluster, [{ apiVersion: API_VERSION, kind: KIND, metadata: { name, namespace }, spec }]);
    await environment.waitForCondition("Ready", "True", "Scaled");
    expect(resourcesOf(await environment.pipe("jvm"))).toBe("2 8Gi 8Gi");
    expect(await uidsOf("plain")).toEqual(plain);
    expect(environment.errors).toEqual([]);
  });
});

describe("a running pipe that joins a service whose pipes had no resources", () => {
  let environment: TestEnvironment;
  beforeAll(async () => {
    environment = await TestEnvironment.create();
    await restrictController(environment);
  });
  afterAll(() => environment?.end());

  it("is not restarted until somebody requests the default size, also by applying an empty spec", async () => {
    const { pipes: namespace, serviceId, cluster } = environment;
    await apply(cluster, [pipeDeployment({ name: "first", namespace, serviceId })]);
    await environment.startController();
    const { metadata, spec } = await environment.waitForCondition("Ready", "True", "Scaled");
    expect(spec).toEqual({});

    await apply(cluster, [pipeDeployment({ name: "joining", namespace, serviceId, resources: TWO })]);
    const isWaiting = async () => {
      const { status } = await environment.scaling();
      return status?.pipes?.pending?.some(
        ({ name, reason }) => name === "joining" && reason === "SizeNotRequested",
      );
    };
    await waitFor(isWaiting, { what: "the pipe to wait for a request" });
    expect(resourcesOf(await environment.pipe("joining"))).toBe("2 8Gi 8Gi");

    const { name } = metadata;
    await apply(cluster, [{ apiVersion: API_VERSION, kind: KIND, metadata: { name, namespace }, spec: {} }]);
    await waitFor(async () => resourcesOf(await environment.pipe("joining")) === "1 4Gi 4Gi", {
      what: "the pipe to get the default size",
    });
    expect(environment.errors).toEqual([]);
  });
});
