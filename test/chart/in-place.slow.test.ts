import { apply, kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, describe, expect, it, onTestFinished } from "vitest";
import { LEASE_NAME } from "../../src/controller/names.ts";
import type { KubeObject } from "../../src/kube/objects.ts";
import { LEASES, objectPath } from "../../src/kube/paths.ts";
import { errorResponse, type ProxiedRequest } from "../integration/faults/faulty-proxy.ts";
import { HeldServices, PIPE } from "../integration/faults/held-services.ts";
import { mutatingPolicy, TAG, taggedObjects } from "../support/mutating-policy.ts";
import { resourcesOf } from "../support/test-environment.ts";
import { isPaused, podCpus, resumed, unlabel } from "./paused-pipe.ts";
import { Rights } from "./rights.ts";

// The controller has exactly the permissions that the chart grants, and the admission policies restrict it.
let held: HeldServices;
afterEach(() => held?.end());

const isReplicaSetWrite = ({ verb, resource }: ProxiedRequest) =>
  verb === "patch" && resource === "replicasets";

describe("with the permissions and policies of the chart, the controller", () => {
  it("resizes pods in place where a webhook labels every object that is written", async () => {
    held = await HeldServices.start({ steps: ["resumption"] });
    const { cluster, client, records, pipes } = held.environment;
    const names = [pipes, records].map((namespace) => `${namespace}-tags`);
    for (const namespace of [pipes, records])
      await apply(cluster, mutatingPolicy({ name: `${namespace}-tags`, namespace, ...taggedObjects() }));
    held.environment.onEnd(() =>
      kubectl(cluster, ["delete", "mutatingadmissionpolicy,mutatingadmissionpolicybinding", ...names]),
    );
    const lease = () => client.json<KubeObject>({ path: objectPath(LEASES, records, LEASE_NAME) });
    await waitFor(async () => TAG in ((await lease()).metadata.labels ?? {}), {
      what: "the controller to renew its Lease with the label",
    });
    await held.between(2, async (service) => expect(await isPaused(service)).toBe(true));
    await held.each(async (service) => {
      await service.settled(2);
      await service.expectNoRestart();
      expect((await service.pipe()).metadata.labels).toHaveProperty([TAG]);
    });
  });

  it("takes a commit back when ReplicaSets cannot be written, with and without the labels", async () => {
    const steps = ["pause", "resumption"] as const;
    held = await HeldServices.start({ steps, timeouts: { commitMs: 5000 } });
    held.handle((request) => (isReplicaSetWrite(request) ? errorResponse(500, "InternalError") : undefined));
    await held.each(async (service) => {
      await service.environment.requestSize(2);
      await waitFor(() => isPaused(service), { what: "the Deployment to be paused", intervalMs: 20 });
      if (service.step === "pause") await unlabel(service);
    });
    await held.each(async (service) => {
      await resumed(service);
      expect(resourcesOf(await service.pipe())).toBe("1 4Gi 4Gi");
      expect(await podCpus(service)).toEqual(["2", "2"]);
      await service.expectNoRestart();
    });
    held.release();
    await held.each(async (service) => {
      if (service.step === "resumption") await service.settled(2);
      await service.expectNoRestart();
    });
  });

  it("resumes a Deployment whose field managers somebody removed", async () => {
    held = await HeldServices.start({ steps: ["resumption"] });
    await held.each(({ environment }) => environment.patchPipe(PIPE, { metadata: { managedFields: [{}] } }));
    await held.between(2, async (service) => expect(await isPaused(service)).toBe(true));
    await held.each(async (service) => {
      await service.settled(2);
      await service.expectNoRestart();
    });
  });

  it("resumes what it has paused if it loses the permission to list ReplicaSets meanwhile", async () => {
    held = await HeldServices.start({ steps: ["pause"], timeouts: { commitMs: 5000 } });
    const rights = await Rights.of("controller", held.environment);
    onTestFinished(() => rights.close());
    await held.hold(2);
    await rights.without("list apps/replicasets", async () => {
      held.release();
      await held.each(async (service) => {
        await waitFor(() => isPaused(service), { what: "the Deployment to be paused", intervalMs: 5 });
        await resumed(service);
      });
    });
    await held.each((service) => service.settled(2));
  });
});
