import { apply, kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../src/controller/names.ts";
import { collectionPath, PODS } from "../../src/kube/paths.ts";
import type { Container, Pod } from "../../src/kube/pods.ts";
import type { Deployment } from "../../src/kube/workloads.ts";
import { pipeDeployment } from "../support/fixtures/pipe.ts";
import { resourcesOf, TestEnvironment } from "../support/test-environment.ts";
import { restrictController } from "./in-place-account.ts";
import { isAdopted } from "./is-adopted.ts";

const TWO: Container["resources"] = { requests: { cpu: "2", memory: "8Gi" }, limits: { memory: "8Gi" } };

describe("a running pipe that gets the labels of a service", () => {
  let environment: TestEnvironment;
  beforeAll(async () => {
    environment = await TestEnvironment.create();
    await restrictController(environment);
  });
  afterAll(() => environment?.end());

  /** The manifest of a pipe, with or without its size. */
  function manifest(name: string, resources?: Container["resources"]): object {
    const { pipes: namespace, serviceId } = environment;
    const made = pipeDeployment({ name, namespace, serviceId });
    const [container] = made.spec.template.spec.containers;
    const containers = [{ ...container, ...(resources ? { resources } : {}) }];
    return { ...made, spec: { ...made.spec, template: { ...made.spec.template, spec: { containers } } } };
  }

  function adopted(name: string): Promise<Deployment> {
    const find = async () => {
      const pipe = await environment.pipe(name);
      return isAdopted(pipe) ? pipe : undefined;
    };
    return waitFor(find, { what: `${name} to be adopted` });
  }

  /** The pipe has the same template and pods as before, and its size. */
  async function expectUntouched(before: Deployment): Promise<void> {
    const after = await environment.pipe(before.metadata.name);
    expect(resourcesOf(after)).toBe("2 8Gi 8Gi");
    expect(after.spec.template).toEqual(before.spec.template);
    expect(revisionOf(after)).toBe(revisionOf(before));
  }

  function revisionOf({ metadata }: Deployment): string | undefined {
    return metadata.annotations?.["deployment.kubernetes.io/revision"];
  }

  it("keeps its size, and stays as it is when its owner no longer applies the size", async () => {
    await apply(environment.cluster, [manifest("server-side", TWO)]);
    const file = { input: JSON.stringify(manifest("client-side", TWO)) };
    await kubectl(environment.cluster, ["apply", "-f", "-"], file);
    await environment.startController();
    const scaling = await environment.waitForCondition("Ready", "True", "Scaled");
    expect(scaling.spec).toEqual({ replicaCpuMillicores: 2000, replicaMemoryGb: 8 });
    const [serverSide, clientSide] = await Promise.all([adopted("server-side"), adopted("client-side")]);
    expect(revisionOf(serverSide)).toBe("1");
    expect(revisionOf(clientSide)).toBe("1");

    await apply(environment.cluster, [manifest("server-side")]);
    await expectUntouched(serverSide);

    // Client-side apply removes the fields of the last applied manifest, even if other managers own them.
    const later = { input: JSON.stringify(manifest("client-side")) };
    await kubectl(environment.cluster, ["apply", "set-last-applied", "-f", "-"], later);
    await kubectl(environment.cluster, ["apply", "-f", "-"], later);
    await expectUntouched(clientSide);
    await environment.waitForCondition("Ready", "True", "Scaled");
    expect(environment.errors).toEqual([]);
  });
});

describe("running pipes whose template lacks amounts, in a namespace with a LimitRange", () => {
  let environment: TestEnvironment;
  beforeAll(async () => {
    environment = await TestEnvironment.create();
    await restrictController(environment);
  });
  afterAll(() => environment?.end());

  it("keep the pods and the resources that Kubernetes gave to them while they cannot be resized", async () => {
    const { pipes: namespace, serviceId, cluster, client } = environment;
    const limits = { cpu: "500m", memory: "512Mi" };
    const range = { type: "Container", default: limits, defaultRequest: { cpu: "100m", memory: "256Mi" } };
    await apply(cluster, [
      {
        apiVersion: "v1",
        kind: "LimitRange",
        metadata: { name: "range", namespace },
        spec: { limits: [range] },
      },
    ]);
    const podLabels = { [SERVICE_LABEL]: serviceId, [TYPE_LABEL]: DATABASE_TYPE };
    const common = { namespace, serviceId, podLabels };
    await apply(cluster, [
      pipeDeployment({ ...common, name: "no-amount", replicas: 2 }),
      pipeDeployment({ ...common, name: "only-limits", resources: { limits } }),
      pipeDeployment({ ...common, name: "only-cpu", resources: { requests: { cpu: "200m" } } }),
      pipeDeployment({ ...common, name: "only-memory", resources: { limits: { memory: "2560Mi" } } }),
    ]);
    const read = async () => {
      const { items } = await client.json<{ readonly items: readonly Pod[] }>({
        path: collectionPath(PODS, namespace),
      });
      return items
        .filter(({ status }) => status?.containerStatuses?.[0]?.resources)
        .map(({ metadata: { name, uid, generation, managedFields = [] }, spec }) => ({
          name,
          uid,
          generation,
          resizes: managedFields.filter(({ subresource }) => subresource === "resize"),
          resources: spec.containers[0]?.resources,
        }))
        .sort((a, b) => a.name.localeCompare(b.name));
    };
    const before = await waitFor(
      async () => {
        const running = await read();
        return running.length === 5 ? running : undefined;
      },
      { what: "the pods to run" },
    );
    expect(before[0]?.resources).toEqual({ requests: range.defaultRequest, limits });

    // Without a request, the pipes get the default size of the tier.
    await environment.startController({ resizeStrategy: "InPlace" });
    await waitFor(
      async () => {
        const pending = (await environment.scaling()).status?.pipes?.pending ?? [];
        const waiting = pending.filter(({ state }) => state === "Waiting");
        return waiting.length === 4 ? waiting : undefined;
      },
      { what: "the pipes to wait" },
    );
    expect(await read()).toEqual(before);
    expect(environment.errors).toEqual([]);
  });
});
