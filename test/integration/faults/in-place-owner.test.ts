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
      steps: ["resize of the second pod", "write to the ReplicaSet"],
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
    await held.each(async ({ environment, step }) => {
      const isReported = async () => {
        const { status } = await environment.scaling();
        // During the commit, all pods already have the size.
        return step === "write to the ReplicaSet"
          ? status?.pipes?.summary === "1/1"
          : status?.pipes?.pending?.[0]?.state === "Paused";
      };
      await waitFor(isReported, { what: "the pipe to be reported as paused" });
      expect((await environment.pipe(PIPE)).spec.paused).toBe(true);
    });
    await held.each((service) => service.change({ paused: null }));
    await held.each((service) => service.settled(2));
  });
});
