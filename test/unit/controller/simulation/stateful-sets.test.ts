import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Action } from "../../../../src/controller/actions.ts";
import { decide, recheckAtMs } from "../../../../src/controller/decide/decide.ts";
import type { PipeScalingView } from "../../../../src/controller/observe/pipe-scaling-view.ts";
import { isSize } from "../../../../src/controller/observe/resources.ts";
import { statusOf } from "../../../../src/controller/report/status.ts";
import { aScaling, aSnapshot, DECIDE_OPTIONS, NOW_MS, POLICY } from "../../../support/fixtures/snapshot.ts";
import { type SimulatedPod, SimulatedStatefulSet } from "../../../support/simulation/stateful-set.ts";

/** Pods of this size, or with this image, never become ready. */
const BAD_CORES = 8;
const BAD_IMAGE = "bad";

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;

/** Three pods get a size and another one in fewer rounds. */
const MOST_ROUNDS = 200;

function isHealthy({ cores, image }: SimulatedPod): boolean {
  return cores !== BAD_CORES && image !== BAD_IMAGE;
}

/** One service with a StatefulSet. Each step checks what holds at every moment. */
class Story {
  readonly set: SimulatedStatefulSet;
  /** Pods that fail although their size and their image are good. */
  fails: (pod: SimulatedPod) => boolean = () => false;
  #scaling: PipeScalingView = aScaling(1);
  #cores = 1;
  #nowMs = NOW_MS;

  constructor(policy: "OrderedReady" | "Parallel") {
    this.set = new SimulatedStatefulSet(policy);
  }

  request(cores: number): void {
    const { metadata } = this.#scaling;
    const generation = metadata.generation + 1;
    this.#cores = cores;
    this.#scaling = { ...aScaling(cores), metadata: { ...metadata, generation } };
  }

  requestRetry(): void {
    this.#scaling = { ...this.#scaling, retryRequestedAtMs: this.#nowMs };
  }

  /** A change by the owner. */
  own(changes: Partial<Pick<SimulatedStatefulSet, "replicas" | "partition" | "strategy" | "image">>): void {
    Object.assign(this.set, changes);
    this.set.changed(this.#nowMs);
  }

  sync(): void {
    this.set.sync(this.#nowMs);
  }

  runPods(): void {
    this.set.runPods((pod) => isHealthy(pod) && !this.fails(pod), this.#nowMs);
  }

  crash(at: number): void {
    this.set.crash(at, this.#nowMs);
  }

  wait(minutes: number): void {
    this.#nowMs += minutes * MINUTE_MS;
  }

  /** One reconciliation. Returns its number of writes, and when it may decide something else without an event. */
  reconcile() {
    const snapshot = aSnapshot([this.set.view()], {
      nowMs: this.#nowMs,
      scaling: this.#scaling,
      pods: new Map([["statefulset/a", this.set.podViews()]]),
    });
    const decision = decide(snapshot, DECIDE_OPTIONS);
    const status = statusOf(snapshot, this.#scaling, decision, POLICY);
    const isReady = status.conditions?.some((each) => each.type === "Ready" && each.status === "True");
    const others = this.set.pods.filter((pod) => !pod.isTerminating && pod.cores !== this.#cores);
    if (isReady) expect(others, "Ready=True").toEqual([]);
    for (const action of decision.actions) this.#apply(action);
    return { writes: decision.actions.length, recheckMs: recheckAtMs(snapshot, decision) };
  }

  sizes(): readonly number[] {
    return this.set.pods.map(({ cores }) => cores);
  }

  /** Lets everything happen until nothing changes any more. */
  settle(): void {
    for (let round = 0; round < MOST_ROUNDS; round += 1) {
      const before = JSON.stringify(this.set);
      const { writes, recheckMs } = this.reconcile();
      this.sync();
      this.runPods();
      if (writes > 0 || JSON.stringify(this.set) !== before) this.#nowMs += SECOND_MS;
      else if (Number.isFinite(recheckMs)) this.#nowMs = Math.max(this.#nowMs + SECOND_MS, recheckMs);
      else return;
    }
    throw new Error("something changes for ever");
  }

  #apply(action: Action): void {
    const { set } = this;
    if (action.type === "delete-pod") {
      const pod = set.pods.find(({ uid }) => uid === action.pod.metadata.uid);
      expect(pod).toMatchObject({ isReady: false, isTerminating: false });
      expect(pod?.number).toBeGreaterThanOrEqual(set.partition);
      // Without a rollout of the controller, a pod that has its size fails because of its owner.
      const isDone = set.annotation?.cameUp && pod?.cores === set.cores;
      expect(isDone, "deletes a pod of the owner").toBeFalsy();
      if (pod) pod.isTerminating = true;
      return;
    }
    if (action.type !== "resize" && action.type !== "roll-back" && action.type !== "adopt")
      throw new Error(`unexpected ${action.type}`);
    set.annotation = action.rollout;
    if (action.type === "adopt") return;
    expect(set.strategy === "OnDelete" && set.replicas > 0, "rolls out OnDelete").toBe(false);
    const size = action.type === "resize" ? action.rollout.size : action.size;
    if (!isSize(size)) throw new Error("no size");
    set.cores = size.cpuMillicores / 1000;
    set.changed(this.#nowMs);
  }
}

/** Prints what it does if the test fails. */
function step(text: string, run: (story: Story) => unknown) {
  return { run, [fc.toStringMethod]: () => text };
}

const STEP = fc.oneof(
  { weight: 6, arbitrary: fc.constant(step("reconcile", (story) => story.reconcile())) },
  { weight: 6, arbitrary: fc.constant(step("sync", (story) => story.sync())) },
  { weight: 6, arbitrary: fc.constant(step("run pods", (story) => story.runPods())) },
  {
    weight: 3,
    arbitrary: fc.nat(20).map((minutes) => step(`wait ${minutes}`, (story) => story.wait(minutes))),
  },
  {
    weight: 3,
    arbitrary: fc
      .constantFrom(1, 2, 4, BAD_CORES)
      .map((cores) => step(`request ${cores}`, (story) => story.request(cores))),
  },
  {
    weight: 2,
    arbitrary: fc.nat(3).map((at) => step(`pod ${at} is not ready`, (story) => story.crash(at))),
  },
  {
    weight: 1,
    arbitrary: fc.nat(3).map((at) => step(`pod ${at} is deleted`, ({ set }) => set.delete(at))),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(0, 1, 2, 4).map((failing) =>
      step(`pods of ${failing} cores crash`, (story) => {
        story.fails = ({ cores }) => cores === failing;
      }),
    ),
  },
  { weight: 1, arbitrary: fc.constant(step("retry", (story) => story.requestRetry())) },
  {
    weight: 4,
    arbitrary: fc
      .oneof(
        fc.record({ replicas: fc.nat(4) }),
        fc.record({ partition: fc.nat(4) }),
        fc.record({ strategy: fc.constantFrom("RollingUpdate" as const, "OnDelete" as const) }),
        fc.record({ image: fc.constantFrom("good", BAD_IMAGE) }),
      )
      .map((changes) => step(JSON.stringify(changes), (story) => story.own(changes))),
  },
);

const policies = ["OrderedReady", "Parallel"] as const;

describe.each(policies)("a StatefulSet with the policy %s, in virtual time", (policy) => {
  it("gets each size, and returns to the last good one if its pods do not become ready", () => {
    const story = new Story(policy);
    story.settle();
    for (const cores of [4, 1]) {
      story.request(cores);
      story.settle();
      expect(story.sizes()).toEqual([cores, cores, cores]);
    }
    const before = story.set.pods.slice(0, 2);
    story.request(BAD_CORES);
    story.settle();
    expect(story.sizes()).toEqual([1, 1, 1]);
    expect(story.set.pods.slice(0, 2)).toEqual(before);
    expect(story.set.pods.every(isHealthy)).toBe(true);
  });

  it.each<[string, (pod: SimulatedPod) => boolean]>([
    ["its first pod crashes", ({ number }) => number === 0],
    ["its last pod crashes", ({ number }) => number === 2],
    ["all of its pods crash", () => true],
  ])("gets another size although %s with the one that worked before", (_, fails) => {
    for (const next of [4, 1]) {
      const story = new Story(policy);
      story.settle();
      story.request(2);
      story.settle();
      const before = story.set.pods.map(({ uid }) => uid);
      story.fails = (pod) => pod.cores === 2 && fails(pod);
      story.settle();
      expect(story.set.pods.map(({ uid }) => uid)).toEqual(before);
      story.request(next);
      story.settle();
      expect(story.sizes()).toEqual([next, next, next]);
      expect(story.set.pods.every(({ isReady }) => isReady)).toBe(true);
    }
  });

  it("returns to a size that worked before, and with which a pod crashes by now, if the next one fails", () => {
    const story = new Story(policy);
    story.settle();
    story.request(2);
    story.settle();
    story.fails = ({ cores, number }) => cores === 2 && number === 0;
    story.settle();
    story.request(BAD_CORES);
    story.settle();
    expect(story.sizes()).toEqual([2, 2, 2]);
    expect(story.set.pods.map(({ isReady }) => isReady)).toEqual([false, true, true]);
  });

  it("keeps what holds at every moment, and gets its size in the end, whatever happens before", () => {
    fc.assert(
      fc.property(fc.array(STEP, { maxLength: 120, size: "max" }), (steps) => {
        const story = new Story(policy);
        story.settle();
        for (const { run } of steps) run(story);
        // The owner repairs what is its own.
        story.fails = () => false;
        story.own({ replicas: 3, partition: 0, strategy: "RollingUpdate", image: "good" });
        for (const pod of story.set.pods) if (pod.image === BAD_IMAGE) pod.isTerminating = true;
        story.request(2);
        story.settle();
        // The rollout may have failed because of what the owner repaired meanwhile.
        story.wait(1);
        story.requestRetry();
        story.settle();
        expect(story.sizes()).toEqual([2, 2, 2]);
        expect(story.set.pods.every(({ isReady }) => isReady)).toBe(true);
      }),
    );
  });
});
