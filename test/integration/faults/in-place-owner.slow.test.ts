import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, describe, expect, it } from "vitest";
import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../../src/controller/names.ts";
import type { PendingPipe } from "../../../src/crd/pipe-scaling.ts";
import { DEPLOYMENTS, objectPath } from "../../../src/kube/paths.ts";
import { type HeldService, HeldServices, PIPE } from "./held-services.ts";

let held: HeldServices | undefined;
afterEach(() => held?.end());

/** An image that the owner sets later. */
const IMAGE = "registry.example/pipe:2";

const setImage = (service: HeldService) =>
  service.change({ template: { spec: { containers: [{ name: "pipe", image: IMAGE }] } } });

// test/unit/controller/simulation/in-place-steps/owner.test.ts has the other changes at all steps.
describe("during a resize in place, the owner of a pipe can", () => {
  it("change its image between any two steps, which is an ordinary rollout", async () => {
    held = await HeldServices.start();
    await held.between(2, setImage);
    await held.each(async (service) => {
      await service.settled(2);
      const images = (await service.pipe()).spec.template.spec.containers;
      expect(images).toMatchObject([{ image: IMAGE }]);
      const kept = (await service.uids()).filter((uid) => service.before.includes(uid));
      expect(kept).toEqual([]);
      // Before the earlier steps, the pods of the new image are resized in place.
      if (service.step === "write to the ReplicaSet" || service.step === "resumption")
        await service.expectFallback("NotSettled", "its owner changed the pod template meanwhile");
    });
  });

  it("undo its last rollout", async () => {
    held = await HeldServices.start({ steps: ["resize of the second pod", "resumption"] });
    await held.each(setImage);
    await held.each(async (service) => {
      const isReplaced = async () => (await service.uids()).every((uid) => !service.before.includes(uid));
      await waitFor(isReplaced, { what: "the pods of the new image" });
      await service.settled(1);
    });
    const { cluster } = held.environment;
    await held.between(2, async ({ environment, step }) => {
      const undo = kubectl(cluster, ["-n", environment.pipes, "rollout", "undo", `deployment/${PIPE}`]);
      // During the commit, kubectl rejects it, and the owner repeats it later.
      if (step === "resumption") await expect(undo).rejects.toThrow("paused");
      else await undo;
    });
    await held.each((service) => service.settled(2));
  });

  it("apply a manifest that pauses it, and it stays paused until the owner resumes it", async () => {
    held = await HeldServices.start({
      steps: ["resize of the first pod", "resize of the second pod", "write to the ReplicaSet"],
      timeouts: { resizeMs: 8000 },
    });
    // With server-side apply, because kubectl rollout pause rejects a Deployment that is already paused.
    await held.between(2, ({ environment }) =>
      environment.client.json({
        method: "PATCH",
        path: objectPath(DEPLOYMENTS, environment.pipes, PIPE),
        patchType: "application/apply-patch+yaml",
        query: { fieldManager: "owner" },
        body: { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: PIPE }, spec: { paused: true } },
      }),
    );
    await held.each(async (service) => {
      const { environment, step } = service;
      const isReported = async () => {
        const { status } = await environment.scaling();
        const [pending] = status?.pipes?.pending ?? [];
        switch (step) {
          // The other pod does not get the size any more, and the first one returns.
          case "resize of the first pod":
            return pending?.state === "Paused";
          // All pods have the size, and keep it.
          case "resize of the second pod":
            return status?.pipes?.summary === "1/1" && isWaitingForOwner(pending);
          default:
            return status?.pipes?.summary === "1/1" && pending === undefined;
        }
      };
      await waitFor(isReported, { what: "the pipe to be reported as paused" });
      expect((await environment.pipe(PIPE)).spec.paused).toBe(true);
    });
    await held.each((service) => service.change({ paused: null }));
    await held.each(async (service) => {
      await service.settled(2);
      if (service.step !== "resize of the first pod") await service.expectNoRestart();
    });
  });
});

describe("an owner that interferes with a resize in place", () => {
  it("can remove the records of who wrote which field between any two steps, and nothing restarts or stays paused", async () => {
    held = await HeldServices.start();
    await held.between(2, removeRecords);
    await held.each(async (service) => {
      await service.settled(2);
      await service.expectNoRestart();
    });
    // Now there are none from the beginning.
    await held.each(removeRecords);
    await held.each(({ environment }) => environment.requestSize(3));
    await held.each(async (service) => {
      await service.settled(3);
      await service.expectNoRestart();
    });
  });

  it("can remove the labels of the Deployment during the pause, which ends, and its next image is rolled out", async () => {
    held = await HeldServices.start({ steps: ["write to the ReplicaSet", "resumption"] });
    await held.between(2, ({ environment }) =>
      environment.patchPipe(PIPE, { metadata: { labels: { [SERVICE_LABEL]: null, [TYPE_LABEL]: null } } }),
    );
    await held.each(async (service) => {
      const isResumed = async () => (await service.pipe()).spec.paused === undefined;
      await waitFor(isResumed, { what: "the Deployment to be resumed" });
      await service.expectNoRestart();
      await setImage(service);
      const isReplaced = async () => {
        const uids = await service.uids();
        return uids.length === 2 && uids.every((uid) => !service.before.includes(uid));
      };
      await waitFor(isReplaced, { what: "the pods of the new image" });
      const { serviceId } = service.environment;
      await service.environment.patchPipe(PIPE, {
        metadata: { labels: { [SERVICE_LABEL]: serviceId, [TYPE_LABEL]: DATABASE_TYPE } },
      });
      await service.settled(2);
    });
  });
});

/** Like some tools that restore or copy objects. The API server then records only those that apply. */
function removeRecords({ environment }: HeldService): Promise<unknown> {
  return environment.client.json({
    method: "PATCH",
    path: objectPath(DEPLOYMENTS, environment.pipes, PIPE),
    patchType: "application/merge-patch+json",
    body: { metadata: { managedFields: [{}] } },
  });
}

function isWaitingForOwner(pending: PendingPipe | undefined): boolean {
  const message = "its owner paused the Deployment: resume it";
  return pending?.state === "Resized" && pending.message === message;
}
