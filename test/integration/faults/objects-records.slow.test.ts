import { randomUUID } from "node:crypto";
import { apply, kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { START_AFTER_ANNOTATION } from "@pipe-scaling/local-cluster/stages";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { ConfigMap } from "../../../src/kube/objects.ts";
import { CONFIG_MAPS, DEPLOYMENTS, objectPath } from "../../../src/kube/paths.ts";
import { serviceConfigMap, serviceConfigMapName } from "../../../src/records/service.ts";
import { pipeDeployment } from "../../support/fixtures/pipe.ts";
import { resourcesOf, TestEnvironment } from "../../support/test-environment.ts";
import { Invariants } from "./invariants.ts";

const NAMES = ["pipe-a", "pipe-b", "pipe-c"];

describe("a malformed or deleted record during a rescale", () => {
  let environment: TestEnvironment;
  let invariants: Invariants;
  let cores = 1;
  beforeAll(async () => {
    environment = await TestEnvironment.create();
    await environment.startController();
    // The first pipe must not be ready before the controller sees the record, also on a busy machine.
    const podAnnotations = { [START_AFTER_ANNOTATION]: "10s" };
    for (const name of NAMES) await environment.createPipe({ name, cores, podAnnotations });
    await environment.waitForCondition("Ready", "True");
  });
  afterAll(() => environment.end());
  beforeEach(async () => {
    invariants = await Invariants.observe(environment);
  });
  afterEach(() => invariants.close());

  const service = () => serviceConfigMapName(environment.serviceId);
  const organization = () => environment.organizationName;
  const path = (name: string) => objectPath(CONFIG_MAPS, environment.records, name);
  const deleted = (name: string) => environment.client.json({ method: "DELETE", path: path(name) });
  const patched = (data: object) => (name: string) =>
    environment.client.json({
      method: "PATCH",
      path: path(name),
      patchType: "application/merge-patch+json",
      body: { data },
    });

  it.each([
    ["service, malformed", service, patched({ namespace: "Not A Namespace" }), "MalformedRecord"],
    ["service, deleted", service, deleted, "UnknownService"],
    ["organization, malformed", organization, patched({ tier: null }), "MalformedRecord"],
    ["organization, deleted", organization, deleted, "UnknownOrganization"],
  ])("stops it until the record of the %s is restored", async (_, nameOf, spoil, reason) => {
    const { metadata, ...record } = await environment.client.json<ConfigMap>({ path: path(nameOf()) });
    cores += 1;
    invariants.accept(cores);
    await environment.requestSize(cores);
    const given = async () => {
      const pipes = await Promise.all(NAMES.map((name) => environment.pipe(name)));
      return pipes.filter((pipe) => resourcesOf(pipe).startsWith(`${cores} `));
    };
    await waitFor(async () => (await given()).length === 1, { what: "the first pipe to get the size" });
    await spoil(nameOf());
    await environment.waitForCondition("Stalled", "True", reason);
    const isOver = async () =>
      (await given()).every(({ status }) => status?.updatedReplicas === status?.replicas);
    await waitFor(isOver, { what: "the rollouts in progress to end" });
    // The next pipes would get the size now.
    await invariants.quiet(500);
    expect(await given()).toHaveLength(1);
    const { name, namespace, labels } = metadata;
    await kubectl(environment.cluster, [
      "delete",
      "configmap",
      name,
      "-n",
      environment.records,
      "--ignore-not-found",
    ]);
    await environment.create(CONFIG_MAPS, environment.records, {
      ...record,
      metadata: { name, namespace, labels },
    });
    await invariants.settled(cores, { quietMs: 500 });
    await invariants.end();
  });
});

describe("a namespace of pipes that is being deleted", () => {
  it("is left alone, and services in other namespaces are resized", async () => {
    const environment = await TestEnvironment.create();
    const elsewhere = `${environment.pipes}-elsewhere`;
    const other = randomUUID();
    await apply(environment.cluster, [
      { apiVersion: "v1", kind: "Namespace", metadata: { name: elsewhere } },
    ]);
    const { organizationId } = environment;
    await environment.create(
      CONFIG_MAPS,
      environment.records,
      serviceConfigMap({ id: other, organizationId, name: "other", namespace: elsewhere }),
    );
    const invariants = await Invariants.observe(environment, { services: new Map([[other, elsewhere]]) });
    try {
      for (const serviceId of [environment.serviceId, other]) invariants.accept(1, serviceId);
      await environment.startController({ pipeNamespaces: [environment.pipes, elsewhere] });
      for (const name of NAMES) await environment.createPipe({ name, cores: 1 });
      const deployment = pipeDeployment({ name: "pipe-z", namespace: elsewhere, serviceId: other, cores: 1 });
      await environment.create(DEPLOYMENTS, elsewhere, deployment);
      await environment.waitForCondition("Ready", "True");
      // An object with a finalizer keeps its namespace.
      await environment.patchPipe("pipe-a", { metadata: { finalizers: ["test.pipes.clouddb.dev/stay"] } });
      invariants.accept(4);
      await environment.requestSize(4);
      await kubectl(environment.cluster, ["delete", "namespace", environment.pipes, "--wait=false"]);
      await waitFor(async () => (await environment.pipe("pipe-a")).metadata.deletionTimestamp, {
        what: "the pipe to be in deletion",
      });
      await waitFor(
        () =>
          environment.scaling().then(
            () => false,
            () => true,
          ),
        {
          what: "the PipeScaling to be deleted",
        },
      );
      const before = resourcesOf(await environment.pipe("pipe-a"));
      invariants.accept(4, other);
      await kubectl(environment.cluster, [
        "patch",
        "pipescaling",
        other,
        "-n",
        elsewhere,
        "--type=merge",
        "-p",
        JSON.stringify({ spec: { replicaCpuMillicores: 4000, replicaMemoryGb: 16 } }),
      ]);
      await invariants.settled(4, { serviceId: other, quietMs: 1000 });
      expect(resourcesOf(await environment.pipe("pipe-a"))).toBe(before);
      await expect(environment.scaling()).rejects.toThrow("404");
      expect(environment.errors).toEqual([]);
    } finally {
      await environment.patchPipe("pipe-a", { metadata: { finalizers: null } });
      await environment.end();
      await invariants.close();
    }
  });
});
