import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Action } from "../../../../src/controller/decide/actions.ts";
import { decide, failuresOf } from "../../../../src/controller/decide/decide.ts";
import { recheckAtMs } from "../../../../src/controller/decide/recheck.ts";
import { rolloutPhase } from "../../../../src/controller/decide/rollout-phase.ts";
import type { DeploymentView } from "../../../../src/controller/observe/deployment-view.ts";
import type { LastRollout } from "../../../../src/controller/observe/last-rollout.ts";
import { formatAllotment } from "../../../../src/controller/observe/resources.ts";
import type { Snapshot } from "../../../../src/controller/observe/snapshot.ts";
import { validationKey } from "../../../../src/controller/observe/validation.ts";
import type { WriteError, WriteRecord } from "../../../../src/controller/observe/write-record.ts";
import { summarizeConditions } from "../../../../src/controller/report/conditions.ts";
import { OURS } from "../../../../src/domain/rollout-plan.ts";
import { formatSize, sameSize, sizeOfCores } from "../../../../src/domain/size.ts";
import {
  aPipe,
  aRollout,
  aScaling,
  aSnapshot,
  COMPLETE,
  DECIDE_OPTIONS,
  NOW_MS,
  POLICY,
  rollingTo,
  UNDER_WAY,
} from "../../../support/fixtures/snapshot.ts";

const FOUR = sizeOfCores(4);

function summaries(actions: readonly Action[]): string[] {
  return actions.map(summaryOf);
}

function summaryOf(action: Action): string {
  switch (action.type) {
    case "create-pipe-scaling":
      return `create ${JSON.stringify(action.spec)}`;
    case "validate":
      return `dry run of ${action.pipe.metadata.name}`;
    case "refresh":
      return `read ${action.pipe.metadata.name}`;
    case "begin-in-place":
    case "resize-pod":
    case "delete-replica-set":
    case "update-replica-set":
    case "read-template":
    case "resume":
    case "fall-back":
      return `${action.type} ${action.pipe.metadata.name}`;
    case "resize":
      return `${action.pipe.metadata.name} ${formatSize(action.rollout.size)}`;
    case "roll-back":
      return `${action.pipe.metadata.name} back to ${formatAllotment(action.size)}`;
    case "adopt":
      return `adopt ${action.pipe.metadata.name} with ${formatSize(action.rollout.size)}`;
    case "confirm-generation":
      return `confirm the generation for ${action.pipes.map(({ metadata }) => metadata.name).join(", ")}`;
  }
}

function actionsFor(snapshot: Snapshot, options = DECIDE_OPTIONS): string[] {
  return summaries(decide(snapshot, options).actions);
}

function statesFor(snapshot: Snapshot): string[] {
  return decide(snapshot, DECIDE_OPTIONS).sizing?.assessments.map((each) => each.state) ?? [];
}

describe("decide, without work", () => {
  const pipe = aPipe("a");
  const unknown = { ok: false, obstacle: { reason: "UnknownTier", message: "" } } as const;
  it.each<[string, Snapshot]>([
    ["if the service is unknown", aSnapshot([pipe], { namespace: undefined, tier: unknown })],
    ["if the tier is unknown", aSnapshot([pipe], { tier: unknown })],
    [
      "while the PipeScaling is being deleted",
      aSnapshot([pipe], { scaling: aScaling(4, { isBeingDeleted: true }) }),
    ],
    [
      "while the service is suspended",
      aSnapshot([pipe], { scaling: aScaling(4, { spec: { ...aScaling(4).spec, suspend: true } }) }),
    ],
    ["if the pipes have the size", aSnapshot([aPipe("a", { size: FOUR, lastRollout: aRollout(FOUR) })])],
    [
      "if the pipes have the default size of the tier",
      aSnapshot([aPipe("a")], { scaling: aScaling(undefined) }),
    ],
    [
      "if the container of a pipe is ambiguous",
      aSnapshot([aPipe("a", { container: { problem: "two" }, size: undefined })]),
    ],
    ["if there are no pipes", aSnapshot([], { scaling: undefined })],
  ])("returns no actions %s", (_, snapshot) => expect(actionsFor(snapshot)).toEqual([]));
});

describe("decide, if a pipe records a newer generation of the PipeScaling than the cache", () => {
  const ahead = aPipe("a", { lastRollout: aRollout(sizeOfCores(8), { scalingGeneration: 2 }) });
  it("resizes nothing until the generation is confirmed", () => {
    expect(actionsFor(aSnapshot([ahead, aPipe("b")]))).toEqual(["confirm the generation for a"]);
  });
  it("resizes as usual if the generation belongs to another PipeScaling", () => {
    const lastRollout = aRollout(sizeOfCores(8), { scalingGeneration: 2, scalingUid: "another" });
    expect(actionsFor(aSnapshot([aPipe("a", { lastRollout })]))).toEqual(["a 4000m/16Gi"]);
  });
});

describe("decide, for a service without a PipeScaling", () => {
  it("creates it without a size if the service has its first pipe", () => {
    expect(actionsFor(aSnapshot([aPipe("a")], { scaling: undefined }))).toEqual(["create {}"]);
  });

  const sizeSpec = { replicaCpuMillicores: 4000, replicaMemoryGb: 16 };

  it("creates it as suspended if its spec may be outdated and a pipe has another size", () => {
    const spec = { replicaCpuMillicores: 4000, replicaMemoryGb: 16 };
    const created = (cores: number, isOutdated: boolean) =>
      actionsFor(
        aSnapshot([aPipe("a", { size: sizeOfCores(cores) })], {
          scaling: undefined,
          deleted: { spec, isOutdated },
        }),
      );
    expect(created(1, true)).toEqual([`create ${JSON.stringify({ ...spec, suspend: true })}`]);
    expect(created(4, true)).toEqual([`create ${JSON.stringify(spec)}`]);
    expect(created(1, false)).toEqual([`create ${JSON.stringify(spec)}`]);
  });

  it("creates it with the newest size if its deletion was not observed, and suspends it if a pipe has another size", () => {
    const older = rollingTo("a", sizeOfCores(2), {
      lastRollout: aRollout(sizeOfCores(2), { startedAtMs: 1 }),
    });
    const at = (...pipes: DeploymentView[]) => actionsFor(aSnapshot(pipes, { scaling: undefined }));
    expect(at(rollingTo("a", FOUR), rollingTo("b", FOUR))).toEqual([`create ${JSON.stringify(sizeSpec)}`]);
    expect(at(older, rollingTo("b", FOUR))).toEqual([
      `create ${JSON.stringify({ ...sizeSpec, suspend: true })}`,
    ]);
  });

  it("ignores the size of a pipe that moved from another service", () => {
    const movedIn = rollingTo("a", FOUR, { lastRollout: aRollout(FOUR, { serviceId: "another" }) });
    expect(actionsFor(aSnapshot([movedIn, aPipe("b")], { scaling: undefined }))).toEqual(["create {}"]);
  });

  it("re-creates the same PipeScaling after a grace period if the deletion was observed", () => {
    const spec = { ...sizeSpec, suspend: true };
    const at = (recreateAtMs: number) =>
      actionsFor(
        aSnapshot([aPipe("a")], { scaling: undefined, deleted: { spec, isOutdated: false }, recreateAtMs }),
      );
    expect(at(NOW_MS + 1)).toEqual([]);
    expect(at(NOW_MS)).toEqual([`create ${JSON.stringify(spec)}`]);
  });

  it("waits for the grace period of an unseen deletion only if a pipe was resized before", () => {
    const at = (pipe: DeploymentView, recreateAtMs: number) =>
      actionsFor(aSnapshot([pipe, aPipe("b", { size: FOUR })], { scaling: undefined, recreateAtMs }));
    expect(at(rollingTo("a", FOUR), NOW_MS + 1)).toEqual([]);
    expect(at(rollingTo("a", FOUR), NOW_MS)).toEqual([`create ${JSON.stringify(sizeSpec)}`]);
    expect(at(aPipe("a"), NOW_MS + 1)).toEqual(["create {}"]);
  });
});

describe("decide, during a rescale", () => {
  it("first starts a single canary", () => {
    expect(actionsFor(aSnapshot([aPipe("a"), aPipe("b"), aPipe("c")]))).toEqual(["a 4000m/16Gi"]);
    expect(actionsFor(aSnapshot([rollingTo("a", FOUR), aPipe("b"), aPipe("c")]))).toEqual([]);
  });

  it("prefers a healthy pipe as the canary", () => {
    const ill = aPipe("a", { rollout: UNDER_WAY });
    expect(actionsFor(aSnapshot([ill, aPipe("b")]))).toEqual(["b 4000m/16Gi"]);
  });

  it("starts the other pipes after the canary, within the rollout budget", () => {
    const done = rollingTo("a", FOUR, { rollout: COMPLETE });
    const pipes = [done, aPipe("b"), aPipe("c"), aPipe("d"), aPipe("e")];
    expect(actionsFor(aSnapshot(pipes))).toEqual(["b 4000m/16Gi", "c 4000m/16Gi", "d 4000m/16Gi"]);
    expect(actionsFor(aSnapshot(pipes), { ...DECIDE_OPTIONS, overallFree: 1 })).toEqual(["b 4000m/16Gi"]);
  });

  it("reports a pipe without replicas as done only when Kubernetes has observed its size", () => {
    const unseen = { ...UNDER_WAY, isSeen: false };
    const idle = { replicas: 0, lastRollout: aRollout(FOUR, { replicas: 0 }) };
    expect(statesFor(aSnapshot([rollingTo("a", FOUR, { ...idle, rollout: unseen })]))).toEqual(["rolling"]);
    expect(statesFor(aSnapshot([rollingTo("a", FOUR, { ...idle, rollout: COMPLETE })]))).toEqual(["done"]);
  });

  it("counts pods that are still terminating", () => {
    const ending = { ...COMPLETE, terminatingReplicas: 1 };
    const done = ["a", "b", "c"].map((name) => rollingTo(name, FOUR, { rollout: ending }));
    expect(actionsFor(aSnapshot([...done, aPipe("d")]))).toEqual([]);
  });

  it("does not wait for a paused pipe", () => {
    const done = rollingTo("a", FOUR, { rollout: COMPLETE });
    const paused = ["b", "c", "d"].map((name) => rollingTo(name, FOUR, { isPaused: true }));
    expect(actionsFor(aSnapshot([done, ...paused, aPipe("e")]))).toEqual(["e 4000m/16Gi"]);
  });

  it("resizes directly to the newest size", () => {
    const older = rollingTo("a", sizeOfCores(2));
    expect(actionsFor(aSnapshot([older, aPipe("b")], { scaling: aScaling(8) }))).toEqual(["a 8000m/32Gi"]);
  });

  it.each([
    [
      "applies the newest size to a rollout in progress, even if the rollout budget is used up",
      1,
      ["a 8000m/32Gi"],
    ],
    ["does not apply the newest size to a rollout that timed out while the rollout budget is used up", 0, []],
  ])("%s", (_, leftMs, actions) => {
    const startedAtMs = NOW_MS - POLICY.rolloutTimeoutMs + leftMs;
    const older = rollingTo("a", sizeOfCores(2), { lastRollout: aRollout(sizeOfCores(2), { startedAtMs }) });
    const snapshot = aSnapshot([older], { scaling: aScaling(8) });
    expect(actionsFor(snapshot, { ...DECIDE_OPTIONS, overallFree: 0 })).toEqual(actions);
  });
});

describe("decide, with a rollout window", () => {
  // NOW_MS is a Monday, 12:00 UTC.
  const rolloutWindow = { schedule: "0 2 * * 6", durationMs: 4 * 3_600_000, timeZone: "UTC" };
  const OPEN = { ...rolloutWindow, schedule: "0 11 * * 1" };
  const opensAtMs = Date.parse("2026-06-06T02:00:00Z");
  const decided = (pipes: readonly DeploymentView[], changes: Partial<Snapshot> = {}) =>
    decide(aSnapshot(pipes, { rolloutWindow, ...changes }), DECIDE_OPTIONS);

  it("starts no rollout that restarts pods before the window opens, and rechecks when it opens", () => {
    const snapshot = aSnapshot([aPipe("a"), aPipe("b")], { rolloutWindow });
    const decision = decide(snapshot, DECIDE_OPTIONS);
    expect(decision.actions).toEqual([]);
    expect(decision.sizing).toMatchObject({ holdBack: "window", window: { open: false, opensAtMs } });
    expect(recheckAtMs(snapshot, decision, DECIDE_OPTIONS)).toBe(opensAtMs);
  });

  it("starts rollouts while the window is open", () => {
    expect(summaries(decided([aPipe("a"), aPipe("b")], { rolloutWindow: OPEN }).actions)).toEqual([
      "a 4000m/16Gi",
    ]);
  });

  it("resizes pipes without replicas and rolls back at any time", () => {
    const failed = rollingTo("a", FOUR, {
      lastRollout: aRollout(FOUR, { startedAtMs: NOW_MS - POLICY.rolloutTimeoutMs }),
    });
    expect(summaries(decided([failed, aPipe("b", { replicas: 0 })]).actions)).toEqual([
      "a back to 1000m/4Gi",
      "b 4000m/16Gi",
    ]);
  });

  it("ignores the window until a time that an administrator set", () => {
    const until = (ms: number) => ({ scaling: aScaling(4, { windowIgnoredUntilMs: ms }) });
    expect(summaries(decided([aPipe("a")], until(NOW_MS + 1)).actions)).toEqual(["a 4000m/16Gi"]);
    expect(decided([aPipe("a")], until(NOW_MS)).actions).toEqual([]);
  });

  it("reports in the conditions when the window opens", () => {
    const scaling = aScaling(4);
    const { sizing } = decided([aPipe("a"), aPipe("b")]);
    expect(summarizeConditions(scaling, aSnapshot([]).tier, sizing)).toMatchObject({
      ready: "False",
      stalled: false,
      reason: "WaitingForWindow",
      message:
        "0 of 2 pipes run 4 cpu / 16 Gi. 2 waiting for the rollout window, which opens at 2026-06-06T02:00:00Z.",
    });
  });
});

describe("decide, before a canary", () => {
  const validating = { ...DECIDE_OPTIONS, validatesFirst: true };
  const key = validationKey(aPipe("a"), FOUR);
  const accepted = (...names: string[]): Partial<Snapshot> => ({
    validations: new Map(names.map((name) => [`uid-${name}`, { key, isPending: false }])),
  });

  it("starts dry runs of all waiting pipes, and resizes none before all are accepted", () => {
    const pipes = [aPipe("a"), aPipe("b"), aPipe("c", { replicas: 0 })];
    expect(actionsFor(aSnapshot(pipes), validating)).toEqual([
      "dry run of a",
      "dry run of b",
      "c 4000m/16Gi",
    ]);
    expect(actionsFor(aSnapshot(pipes, accepted("a")), validating)).toEqual(["dry run of b", "c 4000m/16Gi"]);
    expect(actionsFor(aSnapshot(pipes, accepted("a", "b")), validating)).toEqual([
      "a 4000m/16Gi",
      "c 4000m/16Gi",
    ]);
  });

  it("starts one dry run for each size and pod template, whatever else changes in the Deployment", () => {
    const changed = aPipe("a", { revision: 2 });
    const annotated = aPipe("b", { metadata: { ...aPipe("b").metadata, generation: 2 } });
    const pipes = [changed, annotated];
    expect(actionsFor(aSnapshot(pipes, accepted("a", "b")), validating)).toEqual(["dry run of a"]);
    const larger = aSnapshot([aPipe("a"), aPipe("b")], { ...accepted("a", "b"), scaling: aScaling(8) });
    expect(actionsFor(larger, validating)).toEqual(["dry run of a", "dry run of b"]);
  });

  it("starts another dry run if the rollout of a pipe would now stop its old pods first", () => {
    const changed = aPipe("a", { stopsOldPodsFirst: true });
    expect(actionsFor(aSnapshot([changed, aPipe("b")], accepted("a", "b")), validating)).toEqual([
      "dry run of a",
    ]);
  });

  it("starts no dry run while one is pending, for a single pipe, or when a pipe already runs the size", () => {
    const pending = { validations: new Map([["uid-a", { key, isPending: true }]]) };
    expect(actionsFor(aSnapshot([aPipe("a"), aPipe("b")], pending), validating)).toEqual(["dry run of b"]);
    expect(actionsFor(aSnapshot([aPipe("a")]), validating)).toEqual(["a 4000m/16Gi"]);
    const done = rollingTo("a", FOUR, { rollout: COMPLETE });
    expect(actionsFor(aSnapshot([done, aPipe("b"), aPipe("c")]), validating)).toEqual([
      "b 4000m/16Gi",
      "c 4000m/16Gi",
    ]);
  });
});

describe("decide, before a rollout that stops the old pods first", () => {
  const validating = { ...DECIDE_OPTIONS, validatesFirst: true };
  const first = { stopsOldPodsFirst: true };
  const accepted = (...pipes: DeploymentView[]): Partial<Snapshot> => ({
    validations: new Map(
      pipes.map((pipe) => [pipe.metadata.uid, { key: validationKey(pipe, FOUR), isPending: false }]),
    ),
  });
  /** Names of the pipes that are validated, with a suffix if the validation checks the nodes. */
  const validated = (snapshot: Snapshot) =>
    decide(snapshot, validating).actions.flatMap((action) => {
      if (action.type !== "validate") return [];
      return `${action.pipe.metadata.name}${action.checksNodes ? " and nodes" : ""}`;
    });

  it("checks the nodes even for a single pipe, and then resizes it", () => {
    const pipe = aPipe("a", first);
    expect(actionsFor(aSnapshot([pipe]), validating)).toEqual(["dry run of a"]);
    expect(validated(aSnapshot([pipe]))).toEqual(["a and nodes"]);
    expect(actionsFor(aSnapshot([pipe], accepted(pipe)), validating)).toEqual(["a 4000m/16Gi"]);
  });

  it("checks the nodes for no other pipe, not even in the dry runs before a canary", () => {
    expect(validated(aSnapshot([aPipe("a", first), aPipe("b")]))).toEqual(["a and nodes", "b"]);
    expect(validated(aSnapshot([aPipe("a", { ...first, replicas: 0 })]))).toEqual([]);
  });

  it("checks the nodes even if another pipe already runs the size, but only for pipes that can start next", () => {
    const done = rollingTo("a", FOUR, { rollout: COMPLETE });
    const [b, c] = [aPipe("b", first), aPipe("c")];
    expect(actionsFor(aSnapshot([done, b, c]), validating)).toEqual(["dry run of b"]);
    expect(validated(aSnapshot([done, b, c]))).toEqual(["b and nodes"]);
    expect(actionsFor(aSnapshot([done, b, c], accepted(b)), validating)).toEqual([
      "b 4000m/16Gi",
      "c 4000m/16Gi",
    ]);
    const rolling = ["e", "f", "g"].map((name) => rollingTo(name, FOUR));
    expect(validated(aSnapshot([done, b, ...rolling]))).toEqual([]);
  });

  it("does not check the nodes for a pipe whose old pods are already stopped", () => {
    const pipe = rollingTo("a", sizeOfCores(2), first);
    expect(actionsFor(aSnapshot([pipe]), validating)).toEqual(["a 4000m/16Gi"]);
  });

  const tooLarge = (changes: Partial<WriteRecord> = {}): Partial<Snapshot> => {
    const error = { reason: "NoNodeLargeEnough", message: "too large" } as const;
    const outcome = { type: "failed", error, generation: 1 } as const;
    const lastAtMs = NOW_MS - 60_000;
    const write = {
      purpose: "resize",
      size: "4000m/16Gi",
      attempts: 1,
      lastAtMs,
      outcome,
      ...changes,
    } as const;
    return { writes: new Map([["uid-a", write]]) };
  };

  it("does not resize a pipe that fits on no node, and reports a failure that holds back the others", () => {
    const decision = decide(aSnapshot([aPipe("a", first), aPipe("b")], tooLarge()), validating);
    expect(decision.actions).toEqual([]);
    expect(decision.sizing).toMatchObject({
      holdBack: "failure",
      assessments: [
        {
          state: "failed",
          failure: {
            reason: "NoNodeLargeEnough",
            message: "too large",
            attempts: 1,
            generation: 1,
            nextRetryAt: "2026-06-01T12:04:00.000Z",
          },
        },
        { state: "waiting" },
      ],
    });
  });

  it("checks the nodes again after 5 minutes, doubling up to an hour, and sooner if the Deployment has changed", () => {
    const at = (agoMs: number, attempts: number, pipe = aPipe("a", first)) =>
      validated(aSnapshot([pipe], tooLarge({ attempts, lastAtMs: NOW_MS - agoMs })));
    expect(at(299_999, 1)).toEqual([]);
    expect(at(300_000, 1)).toEqual(["a and nodes"]);
    expect(at(599_999, 2)).toEqual([]);
    expect(at(3_600_000, 9)).toEqual(["a and nodes"]);
    const changed = aPipe("a", { ...first, metadata: { ...aPipe("a").metadata, generation: 2 } });
    expect(at(999, 1, changed)).toEqual([]);
    expect(at(1000, 1, changed)).toEqual(["a and nodes"]);
  });

  it("checks the nodes after a restart of the controller no sooner than the status reports", () => {
    const failure = { pipe: "a", uid: "uid-a", size: "4000m/16Gi", message: "too large", attempts: 1 };
    const at = new Date(NOW_MS - 60_000).toISOString();
    const failures = [{ ...failure, reason: "NoNodeLargeEnough", at, generation: 1 }];
    expect(validated(aSnapshot([aPipe("a", first)], { failures }))).toEqual([]);
    const changed = aPipe("a", { ...first, metadata: { ...aPipe("a").metadata, generation: 2 } });
    expect(validated(aSnapshot([changed], { failures }))).toEqual(["a and nodes"]);
  });

  it("does not check the nodes in a requested retry", () => {
    const scaling = aScaling(4, { retryRequestedAtMs: NOW_MS });
    const pipe = aPipe("a", first);
    expect(actionsFor(aSnapshot([pipe], { ...tooLarge(), scaling }), validating)).toEqual(["a 4000m/16Gi"]);
    expect(validated(aSnapshot([pipe, aPipe("b", first)], { ...tooLarge(), scaling }))).toEqual([
      "a",
      "b and nodes",
    ]);
    const later = aScaling(4, { retryRequestedAtMs: NOW_MS + 1 });
    expect(actionsFor(aSnapshot([pipe], { ...tooLarge(), scaling: later }), validating)).toEqual([]);
    const before = aScaling(4, { retryRequestedAtMs: NOW_MS - 300_001 });
    const due = tooLarge({ lastAtMs: NOW_MS - 300_000 });
    expect(validated(aSnapshot([pipe], { ...due, scaling: before }))).toEqual(["a and nodes"]);
  });
});

describe("decide, after earlier writes", () => {
  const record = (changes: Partial<WriteRecord>): Partial<Snapshot> => ({
    writes: new Map([
      [
        "uid-a",
        {
          purpose: "resize",
          size: "4000m/16Gi",
          attempts: 1,
          lastAtMs: NOW_MS,
          outcome: { type: "done", lastRollout: aRollout(FOUR), isStripped: false },
          ...changes,
        },
      ],
    ]),
  });
  const failed = (reason: WriteError["reason"], generation = 1): WriteRecord["outcome"] => ({
    type: "failed",
    error: { reason, message: "no" },
    generation,
  });
  const decided = (changes: Partial<WriteRecord>, ...pipes: readonly DeploymentView[]) =>
    decide(aSnapshot(pipes.length > 0 ? pipes : [aPipe("a")], record(changes)), DECIDE_OPTIONS);

  it("limits the resizes of a pipe if another writer removes its annotation and size", () => {
    expect(summaries(decided({ attempts: 1 }).actions)).toEqual(["a 4000m/16Gi"]);
    expect(decided({ attempts: 2 }).actions).toEqual([]);
    expect(failuresOf(decided({ attempts: 4, lastAtMs: NOW_MS - 86_400_000 }))).toMatchObject([
      { pipe: "a", reason: "FieldConflict", attempts: 4 },
    ]);
  });

  it("does not retry after a restart of the controller if the status reports the conflict", () => {
    const at = new Date(NOW_MS - 3_600_000).toISOString();
    const conflict = {
      pipe: "a",
      uid: "uid-a",
      size: "4000m/16Gi",
      reason: "FieldConflict",
      message: "",
      at,
    };
    const snapshot = aSnapshot([aPipe("a")], { failures: [{ ...conflict, attempts: 4 }] });
    expect(decide(snapshot, DECIDE_OPTIONS)).toMatchObject({
      actions: [],
      sizing: { assessments: [{ state: "failed", failure: { reason: "FieldConflict", at } }] },
    });
  });

  it("limits the adoptions of a pipe whose annotation is removed each time", () => {
    const sized = aPipe("a", { size: FOUR });
    expect(summaries(decide(aSnapshot([sized]), DECIDE_OPTIONS).actions)).toEqual([
      "adopt a with 4000m/16Gi",
    ]);
    const outcome = { type: "done", lastRollout: aRollout(FOUR), isStripped: true } as const;
    const stripped = decided({ purpose: "adopt", attempts: 4, outcome }, sized);
    expect(stripped.actions).toEqual([]);
    expect(failuresOf(stripped)).toMatchObject([{ reason: "FieldConflict" }]);
  });

  it("does not adopt a pipe that moved from another service until its rollout has ended", () => {
    const lastRollout = aRollout(FOUR, { serviceId: "another" });
    const moved = (changes: Partial<DeploymentView>) =>
      actionsFor(aSnapshot([rollingTo("a", FOUR, { lastRollout, ...changes })]));
    expect(moved({})).toEqual([]);
    expect(moved({ rollout: COMPLETE })).toEqual(["adopt a with 4000m/16Gi"]);
    expect(moved({ lastRollout: { ...lastRollout, startedAtMs: 0 } })).toEqual(["a back to 1000m/4Gi"]);
  });

  it("retries a failed write with a delay that doubles, while the other pipes continue", () => {
    const at = (attempts: number, agoMs: number) =>
      decided({ attempts, lastAtMs: NOW_MS - agoMs, outcome: failed("WriteFailed") }, aPipe("a"), aPipe("b"));
    expect(summaries(at(3, 3999).actions)).toEqual(["b 4000m/16Gi"]);
    expect(at(3, 3999).sizing?.assessments[0]).toMatchObject({
      state: "retrying",
      failure: { reason: "WriteFailed", message: "no", attempts: 3 },
      recheckAtMs: NOW_MS + 1,
    });
    expect(summaries(at(3, 4000).actions)).toEqual(["a 4000m/16Gi"]);
    expect(summaries(at(50, 299_999).actions)).toEqual(["b 4000m/16Gi"]);
    expect(summaries(at(50, 300_000).actions)).toEqual(["a 4000m/16Gi"]);
  });

  it("retries a rejected size when the Deployment has changed, with a delay that grows with each attempt", () => {
    const changed = (attempts: number, agoMs: number) => {
      const outcome = failed("Refused", 0);
      return summaries(decided({ attempts, lastAtMs: NOW_MS - agoMs, outcome }).actions);
    };
    expect(changed(1, 999)).toEqual([]);
    expect(changed(1, 1000)).toEqual(["a 4000m/16Gi"]);
    expect(changed(6, 31_999)).toEqual([]);
    expect(changed(6, 32_000)).toEqual(["a 4000m/16Gi"]);
  });

  it("does not retry a rejected size until the Deployment changes or 5 minutes have passed", () => {
    expect(decided({ outcome: failed("Refused") }, aPipe("a"), aPipe("b")).actions).toEqual([]);
    const later = decided({ outcome: failed("Refused"), lastAtMs: NOW_MS - 300_000 });
    expect(summaries(later.actions)).toEqual(["a 4000m/16Gi"]);
  });

  it("reads a pipe whose write got no response, and counts it as a rollout until the read succeeds", () => {
    const error = { reason: "WriteFailed", message: "cut short" } as const;
    expect(
      summaries(decided({ outcome: { type: "unknown", error } }, aPipe("a"), aPipe("b")).actions),
    ).toEqual(["read a"]);
    expect(decided({ outcome: { type: "pending" } }, aPipe("a"), aPipe("b")).actions).toEqual([]);
  });

  const stuck = rollingTo("a", FOUR, {
    lastRollout: aRollout(FOUR, { startedAtMs: NOW_MS - POLICY.rolloutTimeoutMs }),
  });

  it("retries a rejected rollback if a retry is requested, and soon after the Deployment has changed", () => {
    const refused = (generation: number, agoMs: number) =>
      record({ purpose: "roll-back", lastAtMs: NOW_MS - agoMs, outcome: failed("Refused", generation) });
    expect(actionsFor(aSnapshot([stuck], refused(1, 60_000)))).toEqual([]);
    const scaling = aScaling(4, { retryRequestedAtMs: NOW_MS });
    expect(actionsFor(aSnapshot([stuck], { ...refused(1, 60_000), scaling }))).toEqual([
      "a back to 1000m/4Gi",
    ]);
    expect(actionsFor(aSnapshot([stuck], refused(0, 999)))).toEqual([]);
    expect(actionsFor(aSnapshot([stuck], refused(0, 1000)))).toEqual(["a back to 1000m/4Gi"]);
  });

  it("limits failing rollbacks, and reports the reason", () => {
    const decision = decided({ purpose: "roll-back", attempts: 2, outcome: failed("Refused") }, stuck);
    expect(decision.actions).toEqual([]);
    expect(failuresOf(decision)).toMatchObject([
      {
        reason: "RolloutTimeout",
        message: expect.stringContaining(
          "the rollback failed: no (attempt 2, next at 2026-06-01T12:10:00.000Z)",
        ),
      },
    ]);
  });
});

describe("decide, for a pipe with a CPU limit", () => {
  it("suggests a fix if the limit is below the size", () => {
    expect(
      failuresOf(decide(aSnapshot([aPipe("a", { cpuLimitMillicores: 2000 })]), DECIDE_OPTIONS)),
    ).toMatchObject([
      {
        reason: "CpuLimitTooLow",
        message: expect.stringContaining("remove limits.cpu, or set it to at least"),
      },
    ]);
  });

  it("resizes if the limit allows the size", () => {
    expect(actionsFor(aSnapshot([aPipe("a", { cpuLimitMillicores: 6000 })]))).toEqual(["a 4000m/16Gi"]);
  });
});

describe("decide, if another writer removes the annotation of a pipe that has the size", () => {
  const pipe = rollingTo("a", FOUR, { rollout: COMPLETE });

  function stripped(attempts: number, agoMs: number, scaling = aScaling(4)): Snapshot {
    const outcome = { type: "done", lastRollout: aRollout(FOUR), isStripped: true } as const;
    const write = { purpose: "adopt", size: formatSize(FOUR), attempts, lastAtMs: NOW_MS - agoMs } as const;
    return aSnapshot([pipe], { scaling, writes: new Map([["uid-a", { ...write, outcome }]]) });
  }

  it("reports a field conflict, and restores the annotation only after 0, 10 and 60 s", () => {
    expect(statesFor(stripped(1, 0))).toEqual(["failed"]);
    expect(actionsFor(stripped(1, 0))).toEqual(["adopt a with 4000m/16Gi"]);
    expect(actionsFor(stripped(2, 9000))).toEqual([]);
    expect(actionsFor(stripped(2, 10_000))).toEqual(["adopt a with 4000m/16Gi"]);
    expect(actionsFor(stripped(3, 59_000))).toEqual([]);
    expect(actionsFor(stripped(3, 60_000))).toEqual(["adopt a with 4000m/16Gi"]);
    expect(actionsFor(stripped(4, 24 * 3_600_000))).toEqual([]);
  });

  it("still rolls back a pipe whose rollout failed", () => {
    const failing = rollingTo("a", FOUR, { stopsOldPodsFirst: true });
    const snapshot = { ...stripped(4, 1000), pipes: [failing], unschedulable: new Map([["a", "no node"]]) };
    expect(actionsFor(snapshot)).toEqual(["a back to 1000m/4Gi"]);
  });

  it("restores the annotation with the same rollout if a retry is requested", () => {
    const { actions } = decide(
      stripped(4, 1000, aScaling(4, { retryRequestedAtMs: NOW_MS })),
      DECIDE_OPTIONS,
    );
    expect(actions).toMatchObject([{ type: "adopt", rollout: aRollout(FOUR) }]);
  });
});

describe("decide, if a pipe cannot run the size", () => {
  const late = aRollout(FOUR, { startedAtMs: NOW_MS - POLICY.rolloutTimeoutMs });
  const condition = (type: string, reason: string, at: number) => {
    const time = new Date(at).toISOString();
    return { type, status: "True", reason, message: reason, lastUpdateTime: time, lastTransitionTime: time };
  };

  it.each<[string, Partial<DeploymentView>]>([
    ["RolloutTimeout", { lastRollout: late }],
    [
      "ProgressDeadlineExceeded",
      {
        rollout: { ...UNDER_WAY, progressing: condition("Progressing", "ProgressDeadlineExceeded", NOW_MS) },
      },
    ],
    [
      "FailedCreate",
      {
        rollout: {
          ...UNDER_WAY,
          replicaFailure: condition("ReplicaFailure", "FailedCreate", NOW_MS - 30_000),
        },
      },
    ],
  ])("rolls the pipe back because of %s, and does not resize the others", (reason, changes) => {
    const decision = decide(aSnapshot([rollingTo("a", FOUR, changes), aPipe("b")]), DECIDE_OPTIONS);
    expect(summaries(decision.actions)).toEqual(["a back to 1000m/4Gi"]);
    expect(failuresOf(decision)).toMatchObject([{ pipe: "a", size: "4000m/16Gi", reason, attempts: 1 }]);
  });

  it("remembers the rollback although another writer removed the annotation", () => {
    const lastRollout = aRollout(FOUR, {
      isRollback: true,
      failure: { reason: "FailedCreate", message: "no pod" },
      attempts: 3,
    });
    const write: WriteRecord = {
      ...{ purpose: "roll-back", size: "4000m/16Gi", attempts: 1, lastAtMs: NOW_MS },
      outcome: { type: "done", lastRollout, isStripped: false },
    };
    const snapshot = aSnapshot([aPipe("a", { size: sizeOfCores(2) })], {
      writes: new Map([["uid-a", write]]),
    });
    const decision = decide(snapshot, DECIDE_OPTIONS);
    expect(summaries(decision.actions)).toEqual([]);
    expect(failuresOf(decision)).toMatchObject([{ reason: "FailedCreate", attempts: 3 }]);
  });

  it("reports the failure while the rollback has no response yet, and does not repeat the rollback", () => {
    const write = { purpose: "roll-back", size: "4000m/16Gi", attempts: 1, lastAtMs: NOW_MS } as const;
    const writes = new Map([["uid-a", { ...write, outcome: { type: "pending" } } as const]]);
    const decision = decide(
      aSnapshot([rollingTo("a", FOUR, { lastRollout: late }), aPipe("b")], { writes }),
      DECIDE_OPTIONS,
    );
    expect(summaries(decision.actions)).toEqual([]);
    expect(failuresOf(decision)).toMatchObject([{ pipe: "a", reason: "RolloutTimeout" }]);
    expect(decision.sizing?.assessments[0]).toMatchObject({ state: "failed", phase: "rolling-out" });
  });

  const words = "0/3 nodes are available: 3 Insufficient cpu.";
  const unschedulable = new Map([["a", words]]);

  it("rolls back a Recreate pipe as soon as its new pod fits on no node, because the old pod no longer exists", () => {
    const decision = decide(
      aSnapshot([rollingTo("a", FOUR, { stopsOldPodsFirst: true })], { unschedulable }),
      DECIDE_OPTIONS,
    );
    expect(summaries(decision.actions)).toEqual(["a back to 1000m/4Gi"]);
    expect(failuresOf(decision)).toMatchObject([{ reason: "Unschedulable", message: words }]);
  });

  it("waits for a node if the pipe has another strategy, and reports that no node fits", () => {
    const waiting = decide(aSnapshot([rollingTo("a", FOUR)], { unschedulable }), DECIDE_OPTIONS);
    expect(summaries(waiting.actions)).toEqual([]);
    expect(waiting.sizing?.assessments).toMatchObject([{ state: "rolling", obstacle: words }]);
    const tooLong = decide(
      aSnapshot([rollingTo("a", FOUR, { lastRollout: late })], { unschedulable }),
      DECIDE_OPTIONS,
    );
    expect(failuresOf(tooLong)).toMatchObject([
      { reason: "RolloutTimeout", message: `the rollout has not completed in 15 min: ${words}` },
    ]);
  });

  describe("while another size is requested", () => {
    const stopped = rollingTo("a", FOUR, { stopsOldPodsFirst: true });
    const actionsWith = (pipes: readonly DeploymentView[], changes: Partial<Snapshot> = {}) =>
      summaries(
        decide(aSnapshot(pipes, { unschedulable, scaling: aScaling(8), ...changes }), DECIDE_OPTIONS).actions,
      );
    const refusal = (attempts: number, agoMs: number, purpose: WriteRecord["purpose"], size: string) => ({
      writes: new Map<string, WriteRecord>([
        [
          "uid-a",
          {
            ...{ purpose, size, attempts, lastAtMs: NOW_MS - agoMs },
            outcome: { type: "failed", error: { reason: "Refused", message: "no" }, generation: 1 },
          },
        ],
      ]),
    });

    it("applies the requested size if possible", () => {
      expect(actionsWith([stopped])).toEqual(["a 8000m/32Gi"]);
    });

    it.each<[string, Partial<Snapshot>, Partial<DeploymentView>, DeploymentView[]]>([
      ["is rejected", refusal(1, 0, "resize", "8000m/32Gi"), {}, []],
      ["is above a CPU limit", {}, { cpuLimitMillicores: 6000 }, []],
      [
        "waits for the rollout window",
        { rolloutWindow: { schedule: "0 2 * * 6", durationMs: 3_600_000, timeZone: "UTC" } },
        {},
        [],
      ],
      [
        "is held back by a failure",
        {},
        {},
        [rollingTo("b", sizeOfCores(8), { lastRollout: aRollout(sizeOfCores(8), { startedAtMs: 0 }) })],
      ],
    ])("rolls the pipe back if the requested size %s", (_, changes, ofPipe, others) => {
      expect(actionsWith([{ ...stopped, ...ofPipe }, ...others], changes)[0]).toBe("a back to 1000m/4Gi");
    });

    it("counts a rollback that begins now against the limit of the service", () => {
      const overdue = { ...stopped, lastRollout: aRollout(FOUR, { startedAtMs: 0 }) };
      const done = rollingTo("b", sizeOfCores(8), { rollout: COMPLETE });
      const others = ["c", "d", "e"].map((name) => aPipe(name));
      expect(actionsWith([overdue, done, ...others])).toEqual([
        "a back to 1000m/4Gi",
        "c 8000m/32Gi",
        "d 8000m/32Gi",
      ]);
    });

    it("applies the requested size instead of a rollback also after the timeout, if possible", () => {
      const overdue = { ...stopped, lastRollout: aRollout(FOUR, { startedAtMs: 0 }) };
      expect(actionsWith([overdue])).toEqual(["a 8000m/32Gi"]);
    });

    it("records the failed size, so that the requested one can still be tried", () => {
      const snapshot = aSnapshot([{ ...stopped, cpuLimitMillicores: 6000 }], {
        ...{ unschedulable, scaling: aScaling(8) },
      });
      expect(decide(snapshot, DECIDE_OPTIONS).actions).toMatchObject([
        { rollout: { size: FOUR, isRollback: true, failure: { reason: "Unschedulable", message: words } } },
      ]);
    });

    it("limits rejected rollbacks", () => {
      const actionsAt = (attempts: number, agoMs: number) =>
        actionsWith(
          [{ ...stopped, cpuLimitMillicores: 6000 }],
          refusal(attempts, agoMs, "roll-back", "4000m/16Gi"),
        );
      expect(actionsAt(1, 299_999)).toEqual([]);
      expect(actionsAt(1, 300_000)).toEqual(["a back to 1000m/4Gi"]);
    });

    it("does not roll back a pipe while another write to it is in flight", () => {
      const write = { purpose: "resize", size: "8000m/32Gi", attempts: 1, lastAtMs: NOW_MS } as const;
      const writes = new Map([["uid-a", { ...write, outcome: { type: "pending" } } as const]]);
      expect(actionsWith([stopped], { writes })).toEqual([]);
    });

    it("does not roll back a pipe that came up with its size and failed later", () => {
      const status = { pipes: { total: 1, updated: 1, summary: "1/1", cameUp: { a: "uid-a/1/4000m/16Gi" } } };
      const pipe = { ...stopped, cpuLimitMillicores: 6000 };
      expect(actionsWith([pipe], { scaling: aScaling(8, { status }) })).toEqual([]);
      expect(actionsWith([pipe])).toEqual(["a back to 1000m/4Gi"]);
    });

    it("does not roll back a pipe whose rollout may still succeed, or a rollback", () => {
      const window = { rolloutWindow: { schedule: "0 2 * * 6", durationMs: 3_600_000, timeZone: "UTC" } };
      expect(actionsWith([stopped], { ...window, unschedulable: new Map() })).toEqual([]);
      expect(actionsWith([{ ...stopped, stopsOldPodsFirst: false }], window)).toEqual([]);
      const back = aPipe("a", {
        ...{ rollout: UNDER_WAY, stopsOldPodsFirst: true },
        lastRollout: aRollout(FOUR, { isRollback: true }),
      });
      expect(actionsWith([back], window)).toEqual([]);
    });
  });

  it("names the other writer of the size", () => {
    const taken = { lastRollout: aRollout(FOUR, { attempts: 4 }) };
    const messageOf = (otherManagers: readonly string[]) =>
      failuresOf(decide(aSnapshot([aPipe("a", { ...taken, otherManagers })]), DECIDE_OPTIONS))[0]?.message;
    expect(messageOf(["helm", "somebody"])).toMatch(/^another writer, "helm" and "somebody", has changed/);
    expect(messageOf([])).toMatch(/^another writer has changed/);
  });

  it("does not mistake the condition of an earlier rollout for a failure of this one", () => {
    const progressing = condition("Progressing", "ProgressDeadlineExceeded", NOW_MS);
    const rollout = { ...UNDER_WAY, progressing, progressedAtS: aRollout(FOUR).progressedAtS };
    expect(statesFor(aSnapshot([rollingTo("a", FOUR, { rollout })]))).toEqual(["rolling"]);
  });

  it("ignores a ReplicaFailure for half a minute, and then rechecks", () => {
    const replicaFailure = condition("ReplicaFailure", "FailedCreate", NOW_MS - 10_000);
    const { sizing } = decide(
      aSnapshot([rollingTo("a", FOUR, { rollout: { ...UNDER_WAY, replicaFailure } })]),
      DECIDE_OPTIONS,
    );
    expect(sizing?.assessments[0]).toMatchObject({ state: "rolling", recheckAtMs: NOW_MS + 20_000 });
  });

  it.each([
    ["rolls back a pipe without pods immediately after a ReplicaFailure of this rollout", 999, "failed"],
    ["does not roll back because of a ReplicaFailure of an earlier rollout", 1000, "rolling"],
  ])("%s", (_, earlierMs, state) => {
    const lastRollout = aRollout(FOUR, { startedAtMs: NOW_MS - 5000 });
    const replicaFailure = condition("ReplicaFailure", "FailedCreate", lastRollout.startedAtMs - earlierMs);
    const rollout = { ...UNDER_WAY, isWithoutPods: true, replicaFailure };
    expect(
      decide(aSnapshot([rollingTo("a", FOUR, { rollout, lastRollout })]), DECIDE_OPTIONS).sizing?.assessments,
    ).toMatchObject([{ state }]);
  });

  const before = new Date(late.startedAtMs).toISOString();
  const now = new Date(NOW_MS - 1000).toISOString();
  it.each([
    ["its latest progress", "ReplicaSetUpdated", "True", now, now, NOW_MS - 1000],
    [
      "its resumption, even if the transition time does not change",
      "DeploymentResumed",
      "Unknown",
      before,
      now,
      NOW_MS - 1000,
    ],
    ["the current time while it is still paused", "DeploymentPaused", "Unknown", before, before, NOW_MS],
  ])("starts the timeout of a paused rollout at %s", (...row) => {
    const [, reason, status, lastTransitionTime, lastUpdateTime, sinceMs] = row;
    const progressing = { type: "Progressing", status, reason, lastTransitionTime, lastUpdateTime };
    const pipe = rollingTo("a", FOUR, { lastRollout: late, rollout: { ...UNDER_WAY, progressing } });
    expect(decide(aSnapshot([pipe]), DECIDE_OPTIONS).sizing?.assessments).toMatchObject([
      { state: "rolling", recheckAtMs: sinceMs + POLICY.rolloutTimeoutMs },
    ]);
  });

  it("does not treat a pipe as failed because an earlier pipe with its name failed", () => {
    const at = new Date(NOW_MS - 60_000).toISOString();
    const failure = { size: "4000m/16Gi", reason: "Refused", message: "no", attempts: 1, at, generation: 1 };
    const failures = [{ pipe: "a", uid: "uid-a", ...failure }];
    expect(actionsFor(aSnapshot([aPipe("a")], { failures }))).toEqual([]);
    expect(
      actionsFor(aSnapshot([aPipe("a")], { failures: [{ ...failure, pipe: "a", uid: "other" }] })),
    ).toEqual(["a 4000m/16Gi"]);
  });

  const rolledBack = (attempts: number, rollout: Partial<LastRollout> = {}, stopsOldPodsFirst = false) => {
    const failure = { reason: "RolloutTimeout", message: "too slow" } as const;
    const lastRollout = aRollout(FOUR, { attempts, isRollback: true, failure, ...rollout });
    return aPipe("a", { lastRollout, stopsOldPodsFirst });
  };

  it("still reports the cause after a crash between the rollback and the report", () => {
    const decision = decide(aSnapshot([rolledBack(1), aPipe("b")]), DECIDE_OPTIONS);
    expect(summaries(decision.actions)).toEqual([]);
    expect(failuresOf(decision)).toMatchObject([
      { pipe: "a", reason: "RolloutTimeout", message: "too slow" },
    ]);
  });

  it.each([
    [1, 5],
    [2, 10],
    [5, 60],
    [9, 60],
  ])("after %i attempts, retries %i minutes later", (attempts, minutes) => {
    const startedAtMs = NOW_MS - minutes * 60_000;
    const at = (ms: number) => aSnapshot([rolledBack(attempts, { startedAtMs: ms })]);
    expect(actionsFor(at(startedAtMs + 1))).toEqual([]);
    const { actions } = decide(at(startedAtMs), DECIDE_OPTIONS);
    expect(actions).toMatchObject([{ type: "resize", rollout: { attempts: attempts + 1 } }]);
  });

  it("retries immediately if a retry or another size is requested", () => {
    const retried = aScaling(4, { retryRequestedAtMs: NOW_MS });
    expect(actionsFor(aSnapshot([rolledBack(1)], { scaling: retried }))).toEqual(["a 4000m/16Gi"]);
    expect(actionsFor(aSnapshot([rolledBack(1)], { scaling: aScaling(8) }))).toEqual(["a 8000m/32Gi"]);
  });

  const stale = {
    ...UNDER_WAY,
    progressing: condition("Progressing", "ReplicaSetUpdated", late.startedAtMs),
    progressedAtS: late.startedAtMs / 1000,
  };

  it("does not roll back a pipe that its owner has changed since, if it may have come up before", () => {
    const lastRollout = { ...late, scalingUid: "of the PipeScaling that was deleted" };
    const at = (revision: number) =>
      aSnapshot([rollingTo("a", FOUR, { lastRollout, rollout: stale, revision })]);
    expect(statesFor(at(lastRollout.revision + 1))).toEqual(["failed"]);
    expect(actionsFor(at(lastRollout.revision + 1))).toEqual([]);
    expect(actionsFor(at(lastRollout.revision))).toEqual(["a back to 1000m/4Gi"]);
  });

  it("never reports the rollout of a pipe that was never resized as failed", () => {
    const adopted = aPipe("a", {
      size: FOUR,
      lastRollout: aRollout(FOUR, { attempts: 0, generation: 0 }),
      rollout: stale,
    });
    expect(statesFor(aSnapshot([adopted]))).toEqual(["rolling"]);
  });

  it("does not wait for a timestamp in the future that a wrong clock wrote", () => {
    const startedAtMs = NOW_MS + 86_400_000;
    const at = (agoMs: number) => {
      const rollout = { ...UNDER_WAY, progressedAtS: (NOW_MS - agoMs) / 1000 };
      return aSnapshot([rollingTo("a", FOUR, { lastRollout: aRollout(FOUR, { startedAtMs }), rollout })]);
    };
    expect(actionsFor(at(POLICY.rolloutTimeoutMs - 1000))).toEqual([]);
    expect(actionsFor(at(POLICY.rolloutTimeoutMs))).toEqual(["a back to 1000m/4Gi"]);
    const failed = rolledBack(1, { startedAtMs });
    expect(decide(aSnapshot([failed]), DECIDE_OPTIONS).sizing?.assessments).toMatchObject([
      { state: "failed", recheckAtMs: NOW_MS + 5 * 60_000 },
    ]);
  });

  it("reports the timeout even if it is shorter than a minute", () => {
    const failures = failuresOf(
      decide(aSnapshot([rollingTo("a", FOUR)]), {
        ...DECIDE_OPTIONS,
        policy: { ...POLICY, rolloutTimeoutMs: 12_500 },
      }),
    );
    expect(failures).toMatchObject([{ message: "the rollout has not completed in 12.5 s" }]);
  });

  it("retries a Recreate pipe only on request", () => {
    const startedAtMs = NOW_MS - 86_400_000;
    expect(actionsFor(aSnapshot([rolledBack(1, { startedAtMs }, true)]))).toEqual([]);
  });

  it("applies the size to a pipe with a field conflict four times in total, with growing delays", () => {
    const taken = (attempts: number, agoMs: number) =>
      aSnapshot([aPipe("a", { lastRollout: aRollout(FOUR, { attempts, startedAtMs: NOW_MS - agoMs }) })]);
    expect(actionsFor(taken(1, 0))).toEqual(["a 4000m/16Gi"]);
    expect(actionsFor(taken(2, 9_999))).toEqual([]);
    expect(actionsFor(taken(2, 10_000))).toEqual(["a 4000m/16Gi"]);
    expect(actionsFor(taken(3, 60_000))).toEqual(["a 4000m/16Gi"]);
    expect(actionsFor(taken(4, 86_400_000))).toEqual([]);
  });
});

describe("decide, for a pipe that came up", () => {
  const reported = aScaling(4, {
    status: {
      desired: { replicaCpuMillicores: 4000, replicaMemoryGb: 16, summary: "", source: "Spec" },
      pipes: { total: 1, updated: 1, summary: "", cameUp: { a: "uid-a/7/4000m/16Gi" } },
    },
  });
  const pipe = (changes: Partial<DeploymentView> = {}, generation = 7) => {
    const lastRollout = aRollout(FOUR, { generation, startedAtMs: NOW_MS - 3_600_000 });
    return rollingTo("a", FOUR, { lastRollout, ...changes });
  };

  it("counts the pipe as done even if its pods became unready later, because Ready is about the size", () => {
    expect(statesFor(aSnapshot([pipe()], { scaling: reported }))).toEqual(["done"]);
  });

  it.each<[string, DeploymentView]>([
    ["was resized again", pipe({}, 9)],
    ["is another Deployment with the same name", pipe({ metadata: { ...pipe().metadata, uid: "another" } })],
  ])("does not count the pipe as done if it %s", (_, other) => {
    expect(statesFor(aSnapshot([other], { scaling: reported }))).toEqual(["failed"]);
  });

  it("does not count the pipe as done for another size", () => {
    const scaling = { ...reported, spec: aScaling(8).spec };
    const lastRollout = aRollout(sizeOfCores(8), { generation: 7 });
    const resized = rollingTo("a", sizeOfCores(8), { lastRollout });
    expect(statesFor(aSnapshot([resized], { scaling }))).toEqual(["rolling"]);
  });
});

describe("decide, for every state of the pipes", () => {
  const cores = fc.constantFrom(1, 2, 4, 8);
  const size = cores.map(sizeOfCores);
  const pipe = fc
    .record({
      size: fc.option(size, { nil: undefined }),
      isComplete: fc.boolean(),
      isPaused: fc.boolean(),
      stopsOldPodsFirst: fc.boolean(),
      replicas: fc.integer({ min: 0, max: 3 }),
      terminatingReplicas: fc.integer({ min: 0, max: 1 }),
      lastRollout: fc.option(
        fc.record({
          size,
          lastGoodSize: fc.option(size, { nil: undefined }),
          isRollback: fc.boolean(),
          // A clock can be ahead or behind.
          agoMs: fc.integer({ min: -7_200_000, max: 7_200_000 }),
          attempts: fc.integer({ min: 1, max: 6 }),
        }),
        { nil: undefined },
      ),
    })
    .map(({ isComplete, terminatingReplicas, lastRollout, ...rest }) => ({
      ...rest,
      rollout: { ...COMPLETE, isComplete, terminatingReplicas },
      lastRollout:
        lastRollout &&
        aRollout(lastRollout.size, { ...lastRollout, startedAtMs: NOW_MS - lastRollout.agoMs }),
    }));
  const snapshot = fc
    .record({ pipes: fc.array(pipe, { maxLength: 20 }), wanted: fc.option(cores, { nil: undefined }) })
    .map(({ pipes, wanted }) =>
      aSnapshot(
        pipes.map((each, index) => aPipe(`pipe-${String(index).padStart(2, "0")}`, each)),
        { scaling: aScaling(wanted) },
      ),
    );

  it("applies only the desired size, and rolls back only to a size that completed", () => {
    fc.assert(
      fc.property(snapshot, (each) => {
        const { actions, sizing } = decide(each, DECIDE_OPTIONS);
        for (const action of actions) {
          if (action.type === "resize") {
            expect(action.rollout.size).toEqual(sizing?.desired.size);
            expect(sameSize(action.pipe.size, action.rollout.size)).toBe(false);
          }
          if (action.type === "roll-back") expect(action.size).toEqual(action.pipe.lastRollout?.lastGoodSize);
        }
      }),
    );
  });

  const isOurs = (one: DeploymentView) => OURS.includes(rolloutPhase(one, { nowMs: NOW_MS, policy: POLICY }));

  it("writes each pipe at most once, and restarts no more pipes than allowed", () => {
    fc.assert(
      fc.property(snapshot, fc.integer({ min: 0, max: 50 }), (each, overallFree) => {
        const { actions } = decide(each, { ...DECIDE_OPTIONS, overallFree });
        const touched = actions.flatMap((action) => ("pipe" in action ? [action.pipe] : []));
        expect(new Set(touched.map((one) => one.metadata.name)).size).toBe(touched.length);
        const begun = actions.flatMap((action) => (action.type === "resize" ? [action.pipe] : []));
        const fresh = begun.filter(
          (one) => one.replicas > 0 && !isOurs(one) && one.rollout.terminatingReplicas === 0,
        );
        expect(fresh.length).toBeLessThanOrEqual(
          Math.min(overallFree, Math.max(3, Math.ceil(each.pipes.length / 4))),
        );
      }),
    );
  });

  it("returns the same actions for the same snapshot", () => {
    fc.assert(
      fc.property(snapshot, (each) => {
        expect(decide(structuredClone(each), DECIDE_OPTIONS)).toEqual(decide(each, DECIDE_OPTIONS));
      }),
    );
  });
});
