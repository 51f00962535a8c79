import { describe, expect, it } from "vitest";
import { LAST_ROLLOUT_ANNOTATION, SERVICE_LABEL, TYPE_LABEL } from "../../../../src/controller/names.ts";
import { HOLD } from "../../../../src/controller/observe/workloads/stateful-set.ts";
import { aNode } from "../../../support/fixtures/node.ts";
import { HeldSet } from "../../../support/simulation/held-set.ts";
import { workloadsOf } from "../../../support/simulation/in-place-scenario.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const IMAGE = "registry.example/pipe:1";
const NEXT_IMAGE = "registry.example/pipe:2";

function ofPartition(partition: number) {
  return { type: "RollingUpdate" as const, rollingUpdate: { partition } };
}

describe("the pods of a StatefulSet that is resized in place", () => {
  it.each<[string, Parameters<typeof HeldSet.start>[0]]>([
    ["in order", {}],
    ["in parallel", { podManagementPolicy: "Parallel" }],
    ["with a partition", { updateStrategy: ofPartition(2) }],
    ["with a partition that needs no hold", { updateStrategy: ofPartition(HOLD) }],
    ["with the largest partition", { updateStrategy: ofPartition(2 ** 31 - 1) }],
    ["with OnDelete", { updateStrategy: { type: "OnDelete" } }],
  ])("stay, and its template follows them: %s", async (_, options) => {
    const held = await HeldSet.start(options);
    const before = held.uids();
    held.request(4);
    await held.run(MINUTE);
    held.expectSettled(4);
    expect(held.uids()).toEqual(before);
  });

  it.each<[string, Parameters<typeof HeldSet.start>[0]]>([
    ["with a partition", { updateStrategy: ofPartition(2) }],
    ["with a partition of all pods", { updateStrategy: ofPartition(3) }],
    ["with a partition that needs no hold", { updateStrategy: ofPartition(HOLD) }],
    ["with OnDelete", { updateStrategy: { type: "OnDelete" } }],
  ])("are all reported, although their owner keeps pods from rollouts: %s", async (_, options) => {
    const held = await HeldSet.start(options);
    held.request(4);
    await held.run(MINUTE);
    const { events } = held.simulation;
    expect(held.simulation.status(1).pipes).toMatchObject({
      inPlace: 1,
      resizedBy: { "statefulset/a": "InPlace" },
    });
    expect(events.filter(({ reason }) => reason === "ResizedInPlace").map(({ note }) => note)).toEqual([
      "Resized 3 pods in place to 4 cpu / 16 Gi, and updated the template without a rollout.",
    ]);
  });
});

describe("a StatefulSet from which a webhook removes the annotation of the controller", () => {
  const KINDS: readonly [string, Parameters<typeof HeldSet.start>[0]][] = [
    ["without a partition", {}],
    ["with a partition", { updateStrategy: ofPartition(2) }],
    ["with a partition that needs no hold", { updateStrategy: ofPartition(HOLD) }],
    ["with OnDelete", { updateStrategy: { type: "OnDelete" } }],
  ];

  it.each(KINDS)(
    "keeps its pods with the strategy InPlace, and says why, until the webhook is gone: %s",
    async (_, options) => {
      const held = await HeldSet.start({ strategy: "InPlace", ...options });
      const before = held.uids();
      held.stripAnnotation();
      held.request(4);
      await held.run(10 * MINUTE);
      expect(held.uids()).toEqual(before);
      expect(new Set(held.state().map(({ actual }) => actual))).toEqual(new Set(["1000m/4Gi"]));
      expect(held.ready?.status).toBe("False");
      const message = expect.stringContaining(`removes the annotation ${LAST_ROLLOUT_ANNOTATION}`);
      const pending = [{ state: "Waiting", reason: "NotSupported", message }];
      expect(held.simulation.status(1).pipes).toMatchObject({ pending });
      held.stripAnnotation(false);
      held.simulation.askToRetry(1);
      await held.run(10 * MINUTE);
      held.expectSettled(4);
      expect(held.uids()).toEqual(before);
    },
  );

  it("gets the size by one rollout with the strategy InPlaceOrRollout", async () => {
    const held = await HeldSet.start();
    held.stripAnnotation();
    held.request(4);
    await held.run(10 * MINUTE);
    expect(held.simulation.fallbacks).toEqual(["statefulset/a NotSupported"]);
    expect(new Set(held.state().map(({ actual }) => actual))).toEqual(new Set(["4000m/16Gi"]));
    expect(held.replaced().toSorted()).toEqual(["a-0", "a-1", "a-2"]);
  });

  it("is resized in place if only its managed fields are reset", async () => {
    const held = await HeldSet.start({ strategy: "InPlace" });
    const before = held.uids();
    held.resetManagedFields();
    held.request(4);
    await held.run(10 * MINUTE);
    held.expectSettled(4);
    expect(held.uids()).toEqual(before);
  });
});

describe("a pod that is created while its owner changes the image and changes it back", () => {
  it.each(["label a-0", "label a-1", "label a-2"])(
    "does not get the label of a template that it does not have, before the %s",
    async (step) => {
      const held = await HeldSet.start({ updateStrategy: { type: "OnDelete" } });
      held.onArrival(step, () => {
        held.setImage(NEXT_IMAGE);
        held.deletePod("a-1", 10);
        held.simulation.clock.after(60, () => held.setImage(IMAGE));
      });
      held.request(4);
      await held.run(5 * MINUTE);
      expect(held.mislabeled()).toEqual([]);
      held.change({ updateStrategy: { type: "RollingUpdate" } });
      await held.run(5 * MINUTE);
      expect(held.state().map(({ image }) => image)).toEqual([IMAGE, IMAGE, IMAGE]);
      expect(held.replaced()).toEqual(["a-1"]);
      held.expectSettled(4);
    },
  );
});

const PARTITION_FIELD = "f:partition";

/** Changes that make a StatefulSet a pipe of no service, or of one that gets no size. */
const ENDS: readonly [string, (held: HeldSet) => void][] = [
  ["the service is suspended", ({ simulation }) => simulation.suspend(1, true)],
  ["the service is removed", ({ simulation }) => simulation.removeService(1)],
  ["the PipeScaling is deleted", ({ simulation }) => simulation.removeScaling(1)],
  ["the tier is unknown", ({ simulation }) => simulation.setTier("none")],
  ["the label of the service is removed", (held) => held.setLabels({ [SERVICE_LABEL]: null })],
  ["both labels are removed", (held) => held.setLabels({ [SERVICE_LABEL]: null, [TYPE_LABEL]: null })],
];

describe.each(ENDS)("the partition of a StatefulSet after a commit in which %s", (_, end) => {
  it.each(["hold", "label a-0", "release"])(
    "belongs to its owner, and nothing else is written: before the %s",
    async (step) => {
      const held = await HeldSet.start();
      const before = held.uids();
      held.onArrival(step, () => end(held));
      held.request(4);
      await held.run(5 * MINUTE);
      expect(held.isHeld).toBe(false);
      expect(held.uids()).toEqual(before);
      expect(JSON.stringify(held.ownFields())).not.toContain(PARTITION_FIELD);
      // Nothing else follows.
      const writes = held.writes().length;
      await held.run(5 * MINUTE);
      expect(held.writes().length).toBe(writes);
    },
  );
});

describe("the partition of a StatefulSet whose next size waits for room after a commit", () => {
  it.each(["InPlace", "InPlaceOrRollout"] as const)("belongs to its owner: %s", async (strategy) => {
    const held = await HeldSet.start({ strategy });
    held.onArrival("release", () => {
      held.deferResizes();
      held.request(8);
    });
    held.request(4);
    await held.run(5 * MINUTE);
    expect(held.ready?.status).toBe("False");
    expect(JSON.stringify(held.ownFields())).not.toContain(PARTITION_FIELD);
  });
});

describe("the partition of a StatefulSet whose controller is killed after the release", () => {
  it.each(ENDS.filter(([title]) => title !== "the service is removed"))(
    "belongs to its owner in the end, also if %s",
    async (_, end) => {
      const held = await HeldSet.start();
      const { simulation } = held;
      held.onArrival("release", () => {
        simulation.clock.after(1, () => {
          simulation.stop();
          end(held);
        });
      });
      held.request(4);
      await held.run(MINUTE);
      expect(JSON.stringify(held.ownFields())).toContain(PARTITION_FIELD);
      simulation.start();
      await held.run(5 * MINUTE);
      expect(JSON.stringify(held.ownFields())).not.toContain(PARTITION_FIELD);
    },
  );
});

describe("a StatefulSet whose owner sets a partition above all pods during a commit", () => {
  it("is ready, because all pods and the template have the size", async () => {
    const held = await HeldSet.start();
    held.onArrival("hold", () => {
      held.simulation.clock.after(30, () =>
        held.change({ updateStrategy: { rollingUpdate: { partition: 100 } } }),
      );
    });
    const before = held.uids();
    held.request(4);
    await held.run(5 * MINUTE);
    held.expectSettled(4);
    expect(held.uids()).toEqual(before);
  });
});

describe("an orphan whose labels are refused during a commit", () => {
  it("does not stay held with the strategy InPlace, because it is no pipe of a service any more", async () => {
    const held = await HeldSet.start({ strategy: "InPlace" });
    held.onArrival("label a-1", () => {
      held.simulation.removeService(1);
      held.refuse("pods a-1");
    });
    held.request(4);
    await held.run(5 * MINUTE);
    expect(held.isHeld).toBe(false);
    expect(held.deleted()).toEqual([]);
  });
});

describe("a StatefulSet whose owner takes the size back while its pods get their labels", () => {
  it.each(["label a-0", "label a-1", "label a-2"])("keeps its pods, before the %s", async (step) => {
    const held = await HeldSet.start();
    const before = held.uids();
    held.onArrival(step, () => held.setSize(1));
    held.request(4);
    await held.run(5 * MINUTE);
    held.expectSettled(4);
    expect(held.uids()).toEqual(before);
  });
});

describe("a StatefulSet whose owner changes the image when its pods have the size, and keeps them", () => {
  it.each<[string, Parameters<typeof HeldSet.start>[0]]>([
    ["with OnDelete", { updateStrategy: { type: "OnDelete" } }],
    ["with a partition of all pods", { updateStrategy: ofPartition(3) }],
  ])("waits for its owner, because its template cannot follow: %s", async (_, options) => {
    const held = await HeldSet.start(options);
    held.whenPodsRun(4, () => held.setImage(NEXT_IMAGE));
    held.request(4);
    await held.run(5 * MINUTE);
    expect(held.deleted()).toEqual([]);
    expect(held.ready).toMatchObject({ status: "False", reason: "WaitingForOwner" });
    expect(held.ready?.message).toMatch(/^The one pipe runs 4 .* statefulset\/a: .*: (set|lower) spec\./);
    expect(held.ready?.message).not.toContain("template follows");
    // The API calls this scaled.
    expect(held.simulation.status(1)).toMatchObject({
      pipes: { total: 1, updated: 1 },
      propagation: { completedAt: expect.any(String) },
    });
    held.change({ updateStrategy: ofPartition(0) });
    await held.run(5 * MINUTE);
    held.expectSettled(4);
    expect(held.state().map(({ image }) => image)).toEqual([NEXT_IMAGE, NEXT_IMAGE, NEXT_IMAGE]);
  });
});

describe("a PipeScaling with the strategy InPlace that is deleted while a label is refused", () => {
  it("replaces no pod before it is created again", async () => {
    const held = await HeldSet.start();
    const { simulation } = held;
    simulation.setStrategy(1, "InPlace");
    const before = held.uids();
    held.onArrival("label a-1", () => {
      held.refuse("pods a-1");
      const created = simulation.removeScaling(1);
      simulation.clock.after(20 * SECOND, created);
    });
    held.request(4);
    await held.run(MINUTE);
    expect(held.uids()).toEqual(before);
    held.heal();
    await held.run(10 * MINUTE);
    held.expectSettled(4);
    expect(held.uids()).toEqual(before);
  });
});

describe("a pod that is not ready for a while during a rollout of its owner", () => {
  it("is not deleted, because it has a size that worked, which its owner took back", async () => {
    const held = await HeldSet.start();
    held.request(4);
    await held.run(MINUTE);
    held.crash("a-0", 20 * SECOND);
    held.setSize(1);
    held.setImage(NEXT_IMAGE);
    await held.run(5 * MINUTE);
    held.expectSettled(4);
    expect(held.state().map(({ image }) => image)).toEqual([NEXT_IMAGE, NEXT_IMAGE, NEXT_IMAGE]);
  });

  it("is not deleted with the strategy InPlace, although the template could not follow it", async () => {
    const held = await HeldSet.start({ strategy: "InPlace" });
    held.request(2);
    await held.run(MINUTE);
    held.onArrival("hold", () => held.stopControllerManager(90 * SECOND));
    held.request(4);
    await held.run(80 * SECOND);
    held.setImage(NEXT_IMAGE);
    held.crash("a-0", 30 * SECOND);
    await held.run(10 * MINUTE);
    expect(held.deleted()).toEqual([]);
    expect(held.state().map(({ image }) => image)).toEqual([NEXT_IMAGE, NEXT_IMAGE, NEXT_IMAGE]);
  });
});

const STEPS = ["hold", "label a-0", "label a-1", "label a-2", "release"];

describe.each<[string, (held: HeldSet) => void]>([
  ["is scaled up", (held) => held.change({ replicas: 5 })],
  ["is scaled down", (held) => held.change({ replicas: 1 })],
  ["is scaled to 0", (held) => held.change({ replicas: 0 })],
  ["loses its managed fields", (held) => held.resetManagedFields()],
  ["is not seen by Kubernetes for 50 s", (held) => held.stopControllerManager(50 * SECOND)],
  ["gets a controller that is killed", ({ simulation }) => simulation.start()],
])("a StatefulSet that %s during a commit", (_, act) => {
  it.each(STEPS)("keeps its pods and is released: before the %s", async (step) => {
    const held = await HeldSet.start();
    const before = held.uids();
    held.onArrival(step, () => act(held));
    held.request(4);
    await held.run(5 * MINUTE);
    held.expectSettled(4);
    expect(held.replaced()).toEqual([]);
    const kept = held.uids().filter((uid) => before.includes(uid));
    expect(kept).toEqual(before.slice(0, held.uids().length));
  });
});

describe("a StatefulSet whose labels are written slowly", () => {
  it("does not stay held when the controller ends by SIGTERM", async () => {
    const held = await HeldSet.start();
    const { simulation } = held;
    const before = held.uids();
    held.delay("pods", 8 * SECOND);
    held.onArrival("hold", () => void simulation.terminate());
    held.request(4);
    await held.run(5 * MINUTE);
    expect(held.isHeld).toBe(false);
    expect(held.uids()).toEqual(before);
    simulation.start();
    await held.run(5 * MINUTE);
    held.expectSettled(4);
    expect(held.uids()).toEqual(before);
  });
});

describe("a StatefulSet that is scaled to 0 and up again before all of its pods have ended", () => {
  it("is not rolled out", async () => {
    const held = await HeldSet.start();
    held.whenPodsRun(4, () => {
      held.change({ replicas: 0 });
      held.simulation.clock.after(300, () => held.change({ replicas: 3 }));
    });
    held.request(4);
    await held.run(5 * MINUTE);
    held.expectSettled(4);
    expect(held.replaced()).toEqual([]);
  });
});

describe.each<[string, object, object]>([
  ["scales it to zero", { replicas: 0 }, { replicas: 1 }],
  [
    "keeps its pods with a partition",
    { updateStrategy: { rollingUpdate: { partition: 1 } } },
    { updateStrategy: { rollingUpdate: { partition: 0 } } },
  ],
  [
    "chooses OnDelete",
    { updateStrategy: { type: "OnDelete" } },
    { updateStrategy: { type: "RollingUpdate" } },
  ],
])("a StatefulSet whose owner %s during a rollout, and undoes that hours later", (_, before, after) => {
  it("keeps a size with which its pod starts then", async () => {
    const held = await HeldSet.start({ strategy: "Rollout", replicas: 1 });
    const { kubelets } = workloadsOf(held.simulation);
    kubelets.startMs = () => undefined;
    held.request(4);
    await held.run(MINUTE);
    held.change(before);
    await held.run(120 * MINUTE);
    kubelets.startMs = () => 30 * SECOND;
    held.change(after);
    held.deletePod("a-0", SECOND);
    await held.run(2 * MINUTE);
    held.expectSettled(4);
  });
});

describe("a StatefulSet whose pods cannot get their labels, because the API server does not respond", () => {
  it("gets at most 20 writes in an hour, and its partition belongs to its owner in the end", async () => {
    const held = await HeldSet.start();
    const { cluster } = held.simulation;
    const before = held.uids();
    held.onArrival("hold", () => held.loseLabels());
    held.request(4);
    const since = held.writes().length;
    await held.run(60 * MINUTE - SECOND);
    const writes = held.writes().slice(since);
    expect(writes.filter(({ target }) => target === "statefulsets a").length).toBeLessThanOrEqual(20);
    held.heal();
    await held.run(15 * MINUTE);
    held.expectSettled(4);
    expect(held.uids()).toEqual(before);
    expect(cluster.readyJudge.violations).toEqual([]);
    expect(JSON.stringify(held.ownFields())).not.toContain(PARTITION_FIELD);
  });

  it("is no conflict with another writer, although its template gets the old size again and again", async () => {
    const held = await HeldSet.start({ strategy: "InPlace" });
    held.delay("pods", 8 * SECOND);
    held.onArrival("hold", () => held.loseLabels());
    held.request(4);
    const since = held.writes().length;
    const reasons = new Set<string | undefined>();
    for (let ms = 0; ms < 60 * MINUTE - SECOND; ms += SECOND) {
      await held.run(SECOND);
      reasons.add(held.ready?.reason);
    }
    expect([...reasons]).not.toContain("FieldConflict");
    const writes = held.writes().slice(since);
    expect(writes.filter(({ target }) => target === "statefulsets a").length).toBeLessThanOrEqual(20);
  });

  it("leaves the partition to its owner when the size is not wanted any more", async () => {
    const held = await HeldSet.start();
    held.onArrival("hold", () => held.loseLabels());
    held.request(4);
    await held.run(10 * MINUTE);
    held.request(1);
    await held.run(MINUTE);
    held.expectSettled(1);
    expect(JSON.stringify(held.ownFields())).not.toContain(PARTITION_FIELD);
  });
});

it("the status of a StatefulSet whose pods stay held, because a label is refused, says when the next label is tried", async () => {
  const held = await HeldSet.start({ strategy: "InPlace" });
  held.onArrival("label a-1", () => held.refuse("pods a-1"));
  held.request(4);
  await held.run(2 * MINUTE);
  expect(held.isHeld).toBe(true);
  expect(held.ready?.message).toMatch(/a policy says no.*Attempt \d+; the next one is at /);
  const { clock, cluster } = held.simulation;
  const [failure] = held.simulation.status(1).failures ?? [];
  const dueAtMs = clock.monotonic() + Date.parse(failure?.nextRetryAt ?? "") - clock.now();
  const since = cluster.attempts.length;
  await held.run(60 * MINUTE);
  const attempts = cluster.attempts.slice(since);
  const next = attempts.find(({ target }) => target === "pods a-1");
  expect(Math.abs((next?.atMs ?? 0) - dueAtMs)).toBeLessThan(2 * SECOND);
  const targets = attempts.map(({ target }) => target);
  const labels = targets.filter((target) => target === "pods a-1").length;
  const statuses = targets.filter((target) => target.startsWith("pipescalings/status")).length;
  expect(labels).toBeGreaterThan(1);
  expect(statuses).toBeLessThanOrEqual(2 * labels);
});

it("the partition is left to the owner at once after each of many commits", async () => {
  const held = await HeldSet.start();
  for (const cores of [2, 3, 4, 5, 6, 7, 8, 9]) {
    held.request(cores);
    await held.run(10 * SECOND);
    held.expectSettled(cores);
    expect(JSON.stringify(held.ownFields())).not.toContain(PARTITION_FIELD);
  }
});

describe("a StatefulSet whose pods must not be listed after the hold", () => {
  it.each([100, MINUTE, HOUR])(
    "keeps its pods with the strategy InPlace, and does not stay held for %d ms",
    async (durationMs) => {
      const held = await HeldSet.start({ strategy: "InPlace" });
      const before = held.uids();
      held.onArrival("hold", () => held.forbidLists(durationMs));
      held.request(4);
      await held.run(30 * SECOND);
      expect(held.isHeld).toBe(false);
      await held.run(durationMs + 15 * MINUTE);
      held.expectSettled(4);
      expect(held.uids()).toEqual(before);
    },
  );

  it("does not stay held with the strategy InPlaceOrRollout, and gets the size for good", async () => {
    const held = await HeldSet.start();
    held.onArrival("hold", () => held.forbidLists(HOUR));
    held.request(4);
    await held.run(5 * MINUTE);
    held.expectSettled(4);
    expect(held.simulation.fallbacks).toEqual(["statefulset/a Forbidden"]);
  });
});

describe("the partition of an owner that keeps all pods, and looks like a hold of the controller", () => {
  it.each<[string, (held: HeldSet) => void]>([
    ["its managed fields are removed", (held) => held.resetManagedFields()],
    ["the controller is killed", ({ simulation }) => simulation.start()],
    ["Kubernetes does not see it for 50 s", (held) => held.stopControllerManager(50 * SECOND)],
    ["the service is suspended", ({ simulation }) => simulation.suspend(1, true)],
    ["its labels are removed", (held) => held.setLabels({ [SERVICE_LABEL]: null, [TYPE_LABEL]: null })],
  ])("stays during and after a commit in which %s", async (_, act) => {
    for (const step of ["label a-0", "label a-1", "label a-2"]) {
      const held = await HeldSet.start({ updateStrategy: ofPartition(HOLD + 1) });
      const before = held.uids();
      const partitions = held.partitions();
      held.onArrival(step, () => act(held));
      held.request(4);
      await held.run(5 * MINUTE);
      held.simulation.start();
      await held.run(5 * MINUTE);
      expect([...partitions]).toEqual([HOLD + 1]);
      expect(held.uids()).toEqual(before);
    }
  });

  it("stays without managed fields, whatever the service does", async () => {
    const held = await HeldSet.start({ updateStrategy: ofPartition(HOLD) });
    const before = held.uids();
    held.request(2);
    await held.run(MINUTE);
    const partitions = held.partitions();
    held.resetManagedFields();
    for (const cores of [4, 1]) {
      held.simulation.start();
      held.request(cores);
      await held.run(MINUTE);
      held.expectSettled(cores);
    }
    held.setLabels({ [SERVICE_LABEL]: null, [TYPE_LABEL]: null });
    held.simulation.start();
    await held.run(5 * MINUTE);
    expect([...partitions]).toEqual([HOLD]);
    expect(held.uids()).toEqual(before);
  });
});

describe.each(["Deferred", "Infeasible", "Error", "NotObserved"] as const)(
  "a pod that is created during a commit, and that its kubelet does not resize: %s",
  (outcome) => {
    it("is replaced alone, and has the size of the template", async () => {
      const held = await HeldSet.start();
      const { cluster } = held.simulation;
      cluster.nodes = ["node", "other"].map((name) => aNode(name, { cpu: "256", memory: "1Ti" }));
      const [first, , last] = held.uids();
      held.onArrival("label a-0", () => {
        held.deletePod("a-1", 10);
        held.keepSize("a-1", outcome);
      });
      held.request(4);
      await held.run(10 * MINUTE);
      held.expectSettled(4);
      expect(held.replaced()).toEqual(["a-1"]);
      expect(held.uids()).toEqual(expect.arrayContaining([first, last]));
    });
  },
);

describe.each<[string, Parameters<typeof HeldSet.start>[0], number]>([
  ["leaves to its owner", { updateStrategy: { type: "OnDelete" } }, 0],
  ["replaces", {}, 1],
])("a StatefulSet that a node cannot resize, and whose pods the controller %s", (_, options, fallbacks) => {
  it(`is reported ${fallbacks} times as fallen back to a rollout`, async () => {
    const held = await HeldSet.start(options);
    held.keepSize("a-1", "Infeasible");
    held.request(4);
    await held.run(5 * MINUTE);
    const { events } = held.simulation;
    expect(held.simulation.status(1).pipes?.fallbacks ?? []).toHaveLength(fallbacks);
    expect(events.filter(({ reason }) => reason === "FellBackToRollout")).toHaveLength(fallbacks);
  });
});
