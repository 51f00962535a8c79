import { apply, kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ownsSize } from "../../src/controller/observe/workloads/field-owners.ts";
import type { Container, Deployment } from "../../src/kube/objects.ts";
import { pipeDeployment } from "../support/fixtures/pipe.ts";
import { resourcesOf, TestEnvironment } from "../support/test-environment.ts";
import { restrictController } from "./in-place-account.ts";

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

  function isAdopted({ metadata, spec }: Deployment): boolean {
    const [container] = spec.template.spec.containers;
    return (
      metadata.annotations?.["pipes.clouddb.dev/last-rollout"] !== undefined &&
      ownsSize(container, metadata.managedFields, false)
    );
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
