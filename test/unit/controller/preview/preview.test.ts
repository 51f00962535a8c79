import { describe, expect, it } from "vitest";
import { createCaches } from "../../../../src/controller/observe/caches.ts";
import type { Snapshot } from "../../../../src/controller/observe/observe.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import type { PodView } from "../../../../src/controller/observe/pod-view.ts";
import { type PreviewedStep, preview, previewAll } from "../../../../src/controller/preview/preview.ts";
import { TIMEOUTS } from "../../../../src/controller/timeouts.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { organizationConfigMapName } from "../../../../src/records/organization.ts";
import { serviceConfigMapName } from "../../../../src/records/service.ts";
import { oldPod, rolling } from "../../../support/fixtures/in-turn.ts";
import { amounts, aPod, aResizedPod } from "../../../support/fixtures/pod.ts";
import {
  aLabelledPipe,
  aPipe,
  aRollout,
  aScaling,
  aSnapshot,
  aWindow,
  COMPLETE,
  DECIDE_OPTIONS,
  NOW_MS,
  POLICY,
  rollingTo,
} from "../../../support/fixtures/snapshot.ts";
import { aStatefulPipe } from "../../../support/fixtures/stateful-set.ts";
import { TIERS } from "../../../support/fixtures/tiers.ts";
import { aPodWrite, failed, someWrites } from "../../../support/fixtures/writes.ts";

const FOUR = sizeOfCores(4);

function linesOf(snapshot: Snapshot, options = DECIDE_OPTIONS): string[] {
  return preview(snapshot, options).steps.map(lineOf);
}

function lineOf({ pipe = "-", action }: PreviewedStep): string {
  return `${pipe}: ${action}`;
}

/** The lines for the services of these pipes, if at most `mostRollouts` may run. */
function linesOfAll(pipes: readonly PipeView[], mostRollouts = 1): string[] {
  const caches = createCaches();
  const cached = <T>(name: string, value: T) => {
    const { metadata } = aPipe(name);
    return { metadata: { ...metadata, namespace: "records" }, record: { ok: true, value } } as const;
  };
  const organization = { name: "Acme", createdAt: new Date(), byocConfig: [], privateEndpoints: [] };
  const acme = { ...organization, id: "acme", tier: "basic" };
  caches.organizations.apply(cached(organizationConfigMapName("acme"), acme));
  for (const pipe of pipes) {
    const { serviceId: id } = pipe;
    const service = { id, organizationId: "acme", name: id, namespace: "pipes" };
    caches.services.apply(cached(serviceConfigMapName(id), service));
    caches.scalings.apply(aScaling(4, { metadata: { ...aScaling(4).metadata, name: id } }));
    caches.pipes.of(pipe.kind).apply(pipe);
  }
  const where = { kubeconfig: undefined, namespace: "records", pipeNamespaces: [], tiers: TIERS };
  const settings = { ...POLICY, ...where, maxConcurrentRollouts: mostRollouts };
  const informers = { podsProblem: () => undefined, statefulSetsProblem: () => undefined };
  return previewAll(caches, settings, informers, NOW_MS).steps.map(lineOf);
}

describe("a preview", () => {
  it("omits pipes that have their size", () => {
    expect(linesOf(aSnapshot([aPipe("a", { size: FOUR })]))).toEqual([]);
    expect(linesOf(aSnapshot([], { scaling: undefined }))).toEqual([]);
  });

  it("shows the first pipe and what the others wait for", () => {
    const snapshot = aSnapshot([aPipe("a"), aPipe("b")]);
    expect(linesOf(snapshot)).toEqual([
      "a: resize it now",
      "b: resize it later: it waits for a to prove the size",
    ]);
    expect(preview(snapshot, DECIDE_OPTIONS)).toMatchObject({
      begun: 1,
      steps: [{ service: "service", namespace: "pipes", size: "1 cpu / 4 Gi", desired: "4 cpu / 16 Gi" }, {}],
    });
  });

  it("shows that a StatefulSet is left to its owner, and a pod that is deleted after a rollback", () => {
    const options = { updateStrategy: { type: "OnDelete" } } as const;
    const [held] = linesOf(aSnapshot([aStatefulPipe({ options })]));
    expect(held).toMatch(/^statefulset\/a: leave it: its update strategy is OnDelete/);
    const { template } = aStatefulPipe().inTurn ?? {};
    const rollout = aRollout(FOUR, { isRollback: true, generation: 7, revision: 2, template });
    const stuck = aPod("a-2", { templateHash: "a-2", isReady: false }, { resources: amounts(FOUR) });
    const pods = new Map([["statefulset/a", [stuck]]]);
    expect(linesOf(aSnapshot([aStatefulPipe({}, rollout)], { pods }))).toEqual([
      "statefulset/a: delete its pod a-2, which has a size that failed and which Kubernetes does not replace",
    ]);
  });

  it("shows that a pod is deleted for which a StatefulSet waits, although its size worked before", () => {
    const crashing = { restartCount: 2, isRunning: false };
    const stuck = oldPod(0, { isReady: false, readyChangedAtMs: NOW_MS - TIMEOUTS.stuckPodMs });
    const containers = stuck.containers.map((each) => ({ ...each, ...crashing }));
    const pods = new Map([["statefulset/a", [{ ...stuck, containers }, oldPod(1), oldPod(2)]]]);
    expect(linesOf(aSnapshot([rolling({ availableReplicas: 2 })], { pods }))).toEqual([
      "statefulset/a: delete its pod a-0, which is not ready and for which Kubernetes waits",
    ]);
  });

  it("shows a resize in place like a rollout, because the method is not known in advance", () => {
    const labelled = [aLabelledPipe("a"), aLabelledPipe("b")];
    const pods = new Map(["a", "b"].map((name) => [name, [aPod(`${name}-1`, { pipeName: name })]]));
    for (const [pipes, begun] of [[[aPipe("a"), aPipe("b")], 1] as const, [labelled, 0] as const]) {
      const snapshot = aSnapshot(pipes, { strategy: "InPlaceOrRollout", pods });
      expect(linesOf(snapshot)).toEqual([
        "a: resize it now",
        "b: resize it later: it waits for a to prove the size",
      ]);
      expect(preview(snapshot, DECIDE_OPTIONS).begun).toBe(begun);
    }
  });

  it("shows that pods without the size of their template are replaced, or returned to it", () => {
    const inPlaceFailure = {
      size: FOUR,
      reason: "Infeasible",
      message: "no room",
      atMs: NOW_MS - 30_000,
    } as const;
    const lastRollout = aRollout(FOUR, { cameUp: true, inPlaceFailure });
    const previewed = (second: PodView) => {
      const pipe = aLabelledPipe("a", { replicas: 2, size: FOUR, lastRollout });
      const pods = new Map([["a", [aResizedPod("a-1"), second]]]);
      return preview(aSnapshot([pipe], { strategy: "InPlaceOrRollout", pods }), DECIDE_OPTIONS);
    };
    expect(previewed(aPod("a-2"))).toMatchObject({
      begun: 0,
      steps: [{ action: "return its pod a-2 to the size of its template" }],
    });
    const late = { observedGeneration: 1, resizedAtMs: NOW_MS - TIMEOUTS.resizeMs };
    expect(previewed(aResizedPod("a-2", late, { actual: amounts(sizeOfCores(1)) }))).toMatchObject({
      begun: 1,
      steps: [{ action: "resize it now" }],
    });
  });

  it("shows why a resized pod is returned", () => {
    const outcome = failed({ reason: "Refused", message: "exceeded quota" });
    const snapshot = aSnapshot([aLabelledPipe("a", { replicas: 2 })], {
      strategy: "InPlaceOrRollout",
      pods: new Map([["a", [aResizedPod("a-1"), aPod("a-2")]]]),
      writes: someWrites([aPodWrite("a-2", { attempts: 1, lastAtMs: NOW_MS, outcome })]),
    });
    expect(linesOf(snapshot)).toEqual(["a: return its pod a-1 to the size of its template: exceeded quota"]);
  });

  it("shows why a pipe would not be resized with the strategy InPlace", () => {
    const snapshot = aSnapshot([aPipe("a")], { strategy: "InPlace" });
    expect(linesOf(snapshot)).toEqual([
      "a: leave it: it cannot be resized in place, and its strategy replaces no pod: its pods do not have the labels",
    ]);
    expect(preview(snapshot, DECIDE_OPTIONS).begun).toBe(0);
  });

  it.each([
    ["that a template follows its pods", undefined, "let its template follow its pods"],
    [
      "why a template cannot follow its pods",
      "the template has no label",
      "leave it: the template has no label",
    ],
  ])("shows %s", (_, message, action) => {
    const templateProblem =
      message === undefined ? message : ({ reason: "PodsNotLabeled", message } as const);
    const pods = new Map([["a", [aResizedPod("a-1")]]]);
    const pipes = [aLabelledPipe("a", { templateProblem })];
    expect(linesOf(aSnapshot(pipes, { strategy: "InPlace", pods }))).toEqual([`a: ${action}`]);
  });

  it("continues as if the PipeScaling were created", () => {
    const done = rollingTo("a", FOUR, { rollout: COMPLETE });
    expect(linesOf(aSnapshot([done], { scaling: undefined }))).toEqual([
      "-: create its PipeScaling with 4 cpu / 16 Gi",
    ]);
    expect(linesOf(aSnapshot([done, aPipe("b")], { scaling: undefined }))).toEqual([
      "-: create its PipeScaling with 4 cpu / 16 Gi, suspended",
      "b: leave it: suspended",
    ]);
  });

  it("shows that pipes which ran before they got their labels keep their resources if they must restart", () => {
    const odd = { requests: { cpu: "1500m", memory: "5Gi" }, limits: { memory: "5Gi" } };
    const create = "-: create its PipeScaling with 2 cpu / 8 Gi";
    const kept = (name: string, reason: string) =>
      `${name}: leave it: no size was requested since it got its labels, so it keeps its resources; another size needs a restart, because ${reason}`;
    const [labelled, unlabelled] = [
      aLabelledPipe("a", { size: undefined, otherResources: odd }),
      aPipe("b", { size: undefined, otherResources: odd }),
    ];
    const previewed = (pipe: PipeView, strategy: Snapshot["strategy"]) => {
      const pods = new Map([["a", [aPod("a-1", {}, { resources: odd })]]]);
      const { steps, begun } = preview(
        aSnapshot([pipe], { scaling: undefined, strategy, pods }),
        DECIDE_OPTIONS,
      );
      return [begun, ...steps.map(lineOf)];
    };
    expect(previewed(unlabelled, "Rollout")).toEqual([0, create, kept("b", "its strategy is Rollout")]);
    expect(previewed(unlabelled, "InPlaceOrRollout")).toEqual([
      0,
      create,
      kept("b", "its pods do not have the labels"),
    ]);
    expect(previewed(labelled, "InPlaceOrRollout")).toEqual([0, create, "a: resize it now"]);
  });

  it("shows that a pipe without resources gets its first size", () => {
    const empty = aPipe("a", { size: undefined, otherResources: undefined });
    expect(linesOf(aSnapshot([empty], { scaling: undefined }))).toEqual([
      "-: create its PipeScaling with no size of its own",
      "a: resize it now",
    ]);
  });

  it("shows the size that pipes get or have instead of one with which they ran out of memory", () => {
    const [one, killedMs] = [sizeOfCores(1), NOW_MS - 120_000];
    const outOfMemory = { size: one, previous: FOUR, pipe: "a", message: "killed", atMs: killedMs } as const;
    const times = { inPlaceStartedAtMs: NOW_MS - 300_000, startedAtMs: NOW_MS - 299_000, cameUp: true };
    const shrunk = aRollout(one, { ...times, lastGoodSize: FOUR, restarts: 0 });
    const small = aLabelledPipe("a", { size: one, lastRollout: shrunk });
    const recorded = { ...small, lastRollout: { ...shrunk, outOfMemory } };
    const other = aLabelledPipe("b", { size: one, lastRollout: shrunk });
    const back = aRollout(FOUR, { cameUp: true, outOfMemory });
    const first = aLabelledPipe("a", { size: FOUR, lastRollout: back });
    const second = aLabelledPipe("b", { size: FOUR, lastRollout: back });
    const killed = aPod("a-1", {}, { restartCount: 2, restartedAtMs: killedMs, isOomKilled: true });
    const previewed = (pipes: readonly PipeView[], a: PodView, b: PodView) => {
      const pods = new Map([
        ["a", [a]],
        ["b", [b]],
      ]);
      const snapshot = aSnapshot(pipes, { scaling: aScaling(1), strategy: "InPlaceOrRollout", pods });
      const { steps } = preview(snapshot, { ...DECIDE_OPTIONS, commitsFree: 0 });
      expect(new Set(steps.map(({ desired }) => desired))).toEqual(new Set(["4 cpu / 16 Gi"]));
      return steps.map(lineOf);
    };
    const twice = (action: string) => [`a: ${action}`, `b: ${action}`];
    const [large, rest] = [aResizedPod("a-1"), aResizedPod("b-1")];
    expect(previewed([small, other], killed, aPod("b-1"))).toEqual(
      twice("resize it later: it waits for the record that the service ran out of memory"),
    );
    expect(previewed([recorded, other], killed, aPod("b-1"))).toEqual(twice("resize it now"));
    expect(previewed([recorded, other], large, rest)).toEqual(twice("let its template follow its pods"));
    expect(previewed([first, other], large, aPod("b-1"))).toEqual([
      "a: leave it: killed",
      "b: resize it now",
    ]);
    expect(previewed([first, second], large, rest)).toEqual(twice("leave it: killed"));
  });

  it("shows why a pipe cannot be resized", () => {
    const obstacle = { reason: "UnknownTier", message: "The tier is gold." } as const;
    expect(linesOf(aSnapshot([aPipe("a")], { tier: { ok: false, obstacle } }))).toEqual([
      "-: leave it: The tier is gold.",
    ]);
    const suspended = aScaling(4, { spec: { ...aScaling(4).spec, suspend: true } });
    expect(linesOf(aSnapshot([aPipe("a")], { scaling: suspended }))).toEqual(["a: leave it: suspended"]);
    const late = aRollout(FOUR, { startedAtMs: NOW_MS - POLICY.rolloutTimeoutMs });
    const stuck = aSnapshot([rollingTo("a", FOUR, { lastRollout: late }), aPipe("b")]);
    expect(linesOf(stuck)).toEqual([
      "a: roll it back to 1 cpu / 4 Gi: the rollout has not completed in 15 min",
      "b: resize it later: it waits because of the failure",
    ]);
    const scaling = aScaling(8);
    const rolloutWindow = aWindow();
    const stopped = rollingTo("a", FOUR, { lastRollout: late, stopsOldPodsFirst: true });
    expect(linesOf(aSnapshot([stopped], { scaling, rolloutWindow }))).toEqual([
      "a: roll it back to 1 cpu / 4 Gi: the rollout has not completed in 15 min",
    ]);
    const odd = { requests: { cpu: "500m", memory: null }, limits: { memory: null } };
    expect(
      linesOf(aSnapshot([rollingTo("a", FOUR, { lastRollout: { ...late, lastGoodSize: odd } })])),
    ).toEqual(["a: roll it back to its earlier resources: the rollout has not completed in 15 min"]);
    expect(linesOf(aSnapshot([rollingTo("a", FOUR, { isPaused: true })]))).toEqual([
      "a: wait for its owner, who has paused its rollouts",
    ]);
    expect(linesOf(aSnapshot([rollingTo("a", FOUR)]))).toEqual(["a: wait for its rollout or resize"]);
    const unclear = aPipe("a", { container: { problem: "it has two" }, size: undefined });
    expect(linesOf(aSnapshot([unclear]))).toEqual(["a: leave it: it has two"]);
  });

  describe("of a service that must not be resized now", () => {
    const obstacle = { reason: "UnknownTier", message: "The tier is gold." } as const;
    const recreated = aScaling(4, {
      spec: { ...aScaling(4).spec, suspend: true },
      metadata: { ...aScaling(4).metadata, uid: "recreated" },
    });
    const back = "roll it back to 1 cpu / 4 Gi: the rollout has not completed in 15 min";
    const late = { startedAtMs: NOW_MS - POLICY.rolloutTimeoutMs };
    const { template } = aStatefulPipe().inTurn ?? {};
    const rolledBack = aRollout(FOUR, { isRollback: true, generation: 7, revision: 2, template });
    const stuck = aPod("a-2", { templateHash: "a-2", isReady: false }, { resources: amounts(FOUR) });

    it.each<[string, Partial<Snapshot>, string[], string]>([
      ["its tier is unknown", { tier: { ok: false, obstacle } }, ["-: leave it: The tier is gold."], ""],
      ["its PipeScaling is being deleted", { scaling: aScaling(4, { isBeingDeleted: true }) }, [], ""],
      ["the controller suspended it after a deletion", { scaling: recreated }, [], "b: leave it: suspended"],
    ])("shows what is done for a pipe without a pod if %s", (_, changes, before, other) => {
      const stopped = rollingTo("a", FOUR, { lastRollout: aRollout(FOUR, late), stopsOldPodsFirst: true });
      const after = other ? [other] : [];
      expect(linesOf(aSnapshot([stopped, aPipe("b")], changes))).toEqual([...before, `a: ${back}`, ...after]);
      const set = aStatefulPipe({ status: { availableReplicas: 2 } }, rolledBack);
      const pods = new Map([["statefulset/a", [stuck]]]);
      expect(linesOf(aSnapshot([set, aPipe("b")], { pods, ...changes }))).toEqual([
        ...before,
        "statefulset/a: delete its pod a-2, which has a size that failed and which Kubernetes does not replace",
        ...after,
      ]);
    });

    it("shows the pipes that it leaves alone", () => {
      const running = rollingTo("a", FOUR, { stopsOldPodsFirst: true });
      expect(linesOf(aSnapshot([running], { scaling: recreated }))).toEqual(["a: leave it: suspended"]);
      expect(linesOf(aSnapshot([running], { tier: { ok: false, obstacle } }))).toEqual([
        "-: leave it: The tier is gold.",
      ]);
    });

    it("shows the rollback that follows the creation of a suspended PipeScaling", () => {
      const stopped = rollingTo("a", FOUR, { lastRollout: aRollout(FOUR, late), stopsOldPodsFirst: true });
      expect(linesOf(aSnapshot([stopped, aPipe("b")], { scaling: undefined }))).toEqual([
        "-: create its PipeScaling with 4 cpu / 16 Gi, suspended",
        `a: ${back}`,
        "b: leave it: suspended",
      ]);
    });
  });

  it("respects the rollout budget", () => {
    const done = rollingTo("a", FOUR, { rollout: COMPLETE });
    expect(linesOf(aSnapshot([done, aPipe("b")]), { ...DECIDE_OPTIONS, overallFree: 0 })).toEqual([
      "b: resize it later: it waits because the limit of concurrent rollouts across all services is reached",
    ]);
  });

  it("respects the rollout budget across services, of which rollouts in progress are a part", () => {
    const [a, b] = [aPipe("a", { serviceId: "a" }), aPipe("b", { serviceId: "b" })];
    const wait =
      "resize it later: it waits because the limit of concurrent rollouts across all services is reached";
    expect(linesOfAll([a, b])).toEqual(["a: resize it now", `b: ${wait}`]);
    const rolling = rollingTo("c", FOUR, { serviceId: "c" });
    expect(linesOfAll([a, rolling])).toEqual([`a: ${wait}`, "c: wait for its rollout or resize"]);
  });

  it("respects the rollout budget across services, of which pipes without replicas need nothing", () => {
    const idle = Array.from({ length: 60 }, (_, at) => aPipe(`a-${at}`, { serviceId: "a", replicas: 0 }));
    const running = ["b", "c"].map((name) => aPipe(name, { serviceId: name }));
    const lines = linesOfAll([...idle, ...running]);
    expect(lines.filter((line) => /^a-\d+: resize it now$/.test(line))).toHaveLength(60);
    expect(lines.slice(60)).toEqual([
      "b: resize it now",
      "c: resize it later: it waits because the limit of concurrent rollouts across all services is reached",
    ]);
  });

  it("respects the rollout budget across services, of which a rollout to an older size is a part only once", () => {
    const older = rollingTo("a", sizeOfCores(2), { serviceId: "a" });
    const others = ["b", "c"].map((name) => aPipe(name, { serviceId: name }));
    expect(linesOfAll([older, ...others], 2)).toEqual([
      "a: resize it now",
      "b: resize it now",
      "c: resize it later: it waits because the limit of concurrent rollouts across all services is reached",
    ]);
  });
});
