import { randomUUID } from "node:crypto";
import { RESIZE_OUTCOME_ANNOTATION } from "@pipe-scaling/local-cluster/resize-stages";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { formatScalingRequest, REQUEST_ANNOTATION } from "../../src/crd/scaling-request.ts";
import type { KubeObject } from "../../src/kube/objects.ts";
import { collectionPath, EVENTS } from "../../src/kube/paths.ts";
import { startFakeCollector } from "../support/fakes/fake-collector.ts";
import { resourcesOf, TestEnvironment } from "../support/test-environment.ts";
import { createPipe, fallbackMessage, replicaSetsOf, runningPods } from "./in-place.ts";
import { restrictController } from "./in-place-account.ts";
import { podsOf, podUids } from "./pods.ts";

interface ToldEvent extends KubeObject {
  readonly reason: string;
  readonly note: string;
  readonly regarding: { readonly kind: string };
}

describe("with the strategy InPlaceOrRollout, the controller", () => {
  let environment: TestEnvironment;
  beforeEach(async () => {
    environment = await TestEnvironment.create();
    await restrictController(environment);
  });
  afterEach(() => environment.end());

  it("resizes every pod without a restart, and the Deployment keeps its ReplicaSet", async () => {
    await environment.startController({ resizeStrategy: "InPlaceOrRollout" });
    for (const name of ["pipe-a", "pipe-b"]) await createPipe(environment, { name, cores: 1, replicas: 2 });
    await environment.waitForCondition("Ready", "True");
    await runningPods(environment, 4);
    const before = await podUids(environment);
    await environment.requestSize(4);
    await environment.waitForCondition("Ready", "True");
    expect(await podUids(environment)).toEqual(before);
    for (const name of ["pipe-a", "pipe-b"]) {
      const pipe = await environment.pipe(name);
      expect(resourcesOf(pipe)).toBe("4 16Gi 16Gi");
      expect(pipe.spec.paused).toBeUndefined();
    }
    expect(await replicaSetsOf(environment)).toHaveLength(2);
    for (const pod of await podsOf(environment)) {
      expect(pod.status?.containerStatuses).toMatchObject([
        { restartCount: 0, resources: { requests: { cpu: "4", memory: "16Gi" } } },
      ]);
    }
  });

  it("replaces the pods of a pipe that its node cannot resize, with the reason in the status", async () => {
    await environment.startController({ resizeStrategy: "InPlaceOrRollout" });
    await createPipe(environment, {
      name: "pipe-a",
      cores: 1,
      podAnnotations: { [RESIZE_OUTCOME_ANNOTATION]: "Infeasible" },
    });
    await environment.waitForCondition("Ready", "True");
    await runningPods(environment, 1);
    const [before] = await podsOf(environment);
    await environment.requestSize(4);
    expect(await fallbackMessage(environment)).toContain("pod pipe-a-");
    await environment.waitForCondition("Ready", "True");
    expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("4 16Gi 16Gi");
    expect((await podsOf(environment)).map(({ metadata }) => metadata.uid)).not.toContain(
      before?.metadata.uid,
    );
    const metrics = await environment.scrape();
    expect(metrics).toContain('pipe_scaling_in_place_fallbacks_total{reason="Infeasible"} 1');
  });

  it("reports with the request which pipes it resized in place, and why another one restarted", async () => {
    const collector = await startFakeCollector();
    await environment.startController({ resizeStrategy: "InPlaceOrRollout", otlpEndpoint: collector.url });
    const inPlace = ["pipe-a", "pipe-b", "pipe-c", "pipe-d"];
    for (const name of inPlace) await createPipe(environment, { name, cores: 1 });
    await createPipe(environment, { name: "pipe-e", cores: 1, podLabels: {} });
    await environment.waitForCondition("Ready", "True");
    await runningPods(environment, 5);
    const requestId = randomUUID();
    const size = { replicaCpuMillicores: 4000, replicaMemoryGb: 16 };
    const request = { requestId, apiKey: "k", requestedAt: new Date().toISOString(), ...size };
    await environment.patchScaling(size, { [REQUEST_ANNOTATION]: formatScalingRequest(request) });
    const { status } = await environment.waitForCondition("Ready", "True");
    expect(status?.pipes).toMatchObject({
      inPlace: 4,
      resizedBy: { ...Object.fromEntries(inPlace.map((name) => [name, "InPlace"])), "pipe-e": "Rollout" },
      fallbacks: [{ pipe: "pipe-e", reason: "PodsNotLabeled" }],
    });

    const ofRequest = (each: { readonly note: string }) => each.note.includes(`(request ${requestId})`);
    const events = await waitFor(
      async () => {
        const { items } = await environment.client.json<{ readonly items: readonly ToldEvent[] }>({
          path: collectionPath(EVENTS, environment.pipes),
        });
        const own = items.filter(ofRequest);
        return own.length >= 6 ? own : undefined;
      },
      { what: "the Events" },
    );
    expect(events.map(({ reason, regarding }) => `${reason} ${regarding.kind}`).toSorted()).toEqual([
      "FellBackToRollout PipeScaling",
      ...inPlace.map(() => "ResizedInPlace Deployment"),
      "Scaled PipeScaling",
    ]);

    const spans = await waitFor(() => collector.spans.length >= 6 && collector.spans, { what: "the spans" });
    const count = (name: string) => spans.filter((span) => span.name === name).length;
    expect(["resize in place", "roll out", "rescale"].map(count)).toEqual([4, 1, 1]);
    const metrics = await environment.scrape();
    expect(metrics).toContain("pipe_scaling_in_place_commits_total 4");
  });

  it("never resumes a Deployment that its owner paused", async () => {
    await environment.startController({ resizeStrategy: "InPlaceOrRollout" });
    await createPipe(environment, { name: "pipe-a", cores: 1 });
    await environment.waitForCondition("Ready", "True");
    await environment.patchPipe("pipe-a", { spec: { paused: true } }, "kubectl");
    await environment.requestSize(4);
    await waitFor(async () => (await environment.scaling()).status?.pipes?.pending?.[0]?.state === "Paused", {
      what: "the pipe to be reported as paused",
    });
    expect((await environment.pipe("pipe-a")).spec.paused).toBe(true);
  });
});
