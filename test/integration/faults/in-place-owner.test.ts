import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, describe, expect, it } from "vitest";
import { DEPLOYMENTS, objectPath } from "../../../src/kube/paths.ts";
import { type HeldService, HeldServices, PIPE } from "./held-services.ts";

let held: HeldServices | undefined;
afterEach(() => held?.end());

/** An image that the owner sets later. */
const IMAGE = "registry.example/pipe:2";

const setImage = (service: HeldService) =>
  service.change({ template: { spec: { containers: [{ name: "pipe", image: IMAGE }] } } });

describe("between any two steps of a resize in place, the owner of a pipe can", () => {
  it.each([
    ["up", 3],
    ["down", 1],
  ])("scale it %s without a restart of the other pods", async (_, replicas) => {
    held = await HeldServices.start();
    await held.between(2, (service) => service.change({ replicas }));
    await held.each(async (service) => {
      await service.settled(2, replicas);
      const uids = await service.uids();
      expect(uids.filter((uid) => service.before.includes(uid))).toHaveLength(Math.min(replicas, 2));
      expect(await service.replicaSets()).toHaveLength(1);
    });
  });

  it("scale it to zero and back", async () => {
    held = await HeldServices.start();
    await held.between(2, (service) => service.change({ replicas: 0 }));
    await held.each((service) => service.settled(2, 0));
    await held.each((service) => service.change({ replicas: 2 }));
    await held.each((service) => service.settled(2));
  });

  it("change its image, which is an ordinary rollout", async () => {
    held = await HeldServices.start();
    await held.between(2, setImage);
    await held.each(async (service) => {
      await service.settled(2);
      const images = (await service.pipe()).spec.template.spec.containers;
      expect(images).toMatchObject([{ image: IMAGE }]);
      const kept = (await service.uids()).filter((uid) => service.before.includes(uid));
      expect(kept).toEqual([]);
      // Before the earlier steps, the pods of the new image are resized in place.
      if (service.step === "ReplicaSet" || service.step === "resume")
        await service.expectFallback("NotSettled", "its owner changed the pod template meanwhile");
    });
  });

  it("change its image during the commit, without a pause until the end of the commit", async () => {
    held = await HeldServices.start({ steps: ["ReplicaSet"] });
    await held.hold(2);
    const pausedAt = performance.now();
    await held.each(setImage);
    held.release();
    await held.each(async (service) => {
      const isResumed = async () => (await service.pipe()).spec.paused === undefined;
      await waitFor(isResumed, { what: "the Deployment to be resumed" });
      expect(performance.now() - pausedAt).toBeLessThan(15_000);
    });
  });

  it("undo its last rollout", async () => {
    held = await HeldServices.start();
    await held.each(setImage);
    await held.each(async (service) => {
      const isReplaced = async () => (await service.uids()).every((uid) => !service.before.includes(uid));
      await waitFor(isReplaced, { what: "the pods of the new image" });
      await service.settled(1);
    });
    const { cluster } = held.environment;
    await held.between(2, async ({ environment }) => {
      const undo = ["-n", environment.pipes, "rollout", "undo", `deployment/${PIPE}`];
      await kubectl(cluster, undo).catch((error: unknown) => {
        // During the commit, kubectl rejects it, and the owner repeats it later.
        expect(String(error)).toContain("paused");
      });
    });
    await held.each((service) => service.settled(2));
  });

  it("pause it, and it stays paused until the owner resumes it", async () => {
    held = await HeldServices.start();
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
    await held.each(async ({ environment }) => {
      const isReported = async () => {
        const { status } = await environment.scaling();
        // Before the last step, all pods already have the size.
        return status?.pipes?.pending?.[0]?.state === "Paused" || status?.pipes?.summary === "1/1";
      };
      await waitFor(isReported, { what: "the pipe to be reported as paused", timeoutMs: 170_000 });
      expect((await environment.pipe(PIPE)).spec.paused).toBe(true);
    });
    await held.each((service) => service.change({ paused: null }));
    await held.each((service) => service.settled(2));
  });

  it("resume it during the commit", async () => {
    held = await HeldServices.start();
    await held.between(2, (service) => service.change({ paused: null }));
    await held.each((service) => service.settled(2));
  });
});
