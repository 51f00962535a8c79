import { describe, expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import type { Snapshot } from "../../../../src/controller/observe/observe.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import type { WriteRecord } from "../../../../src/controller/observe/write-record.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { actionsFor } from "../../../support/fixtures/decisions.ts";
import {
  aPipe,
  aScaling,
  aSnapshot,
  DECIDE_OPTIONS,
  NOW_MS,
  resizedTo,
  rollingTo,
} from "../../../support/fixtures/snapshot.ts";
import { aWrite, failed, someWrites } from "../../../support/fixtures/writes.ts";

const FOUR = sizeOfCores(4);

/** Identifies everything that the dry run of a pipe depends on. */
function subjectFor(pipe: PipeView): string {
  const [action] = decide(aSnapshot([pipe, aPipe("z")]), { ...DECIDE_OPTIONS, makesDryRuns: true }).actions;
  return action?.type === "dry-run" ? action.subject : "";
}

describe("before a canary", () => {
  const trying = { ...DECIDE_OPTIONS, makesDryRuns: true };
  const accepted = (...names: string[]): Partial<Snapshot> => ({
    writes: someWrites(
      names.map((name) => aWrite(`uid-${name}`, "dry-run", { subject: subjectFor(aPipe(name)) })),
    ),
  });

  it("starts dry runs of all waiting pipes, and resizes none before all are accepted", () => {
    const pipes = [aPipe("a"), aPipe("b"), aPipe("c", { replicas: 0 })];
    expect(actionsFor(aSnapshot(pipes), trying)).toEqual(["dry run of a", "dry run of b", "c 4000m/16Gi"]);
    expect(actionsFor(aSnapshot(pipes, accepted("a")), trying)).toEqual(["dry run of b", "c 4000m/16Gi"]);
    expect(actionsFor(aSnapshot(pipes, accepted("a", "b")), trying)).toEqual([
      "a 4000m/16Gi",
      "c 4000m/16Gi",
    ]);
  });

  it("starts one dry run for each size and pod template, whatever else changes in the Deployment", () => {
    const changed = aPipe("a", { revision: 2 });
    const annotated = aPipe("b", { metadata: { ...aPipe("b").metadata, generation: 2 } });
    const pipes = [changed, annotated];
    expect(actionsFor(aSnapshot(pipes, accepted("a", "b")), trying)).toEqual(["dry run of a"]);
    const larger = aSnapshot([aPipe("a"), aPipe("b")], { ...accepted("a", "b"), scaling: aScaling(8) });
    expect(actionsFor(larger, trying)).toEqual(["dry run of a", "dry run of b"]);
  });

  it("starts another dry run if the rollout of a pipe would now stop its old pods first", () => {
    const changed = aPipe("a", { stopsOldPodsFirst: true });
    expect(actionsFor(aSnapshot([changed, aPipe("b")], accepted("a", "b")), trying)).toEqual([
      "dry run of a",
    ]);
  });

  it("starts no dry run while one is pending, for a single pipe, or when a pipe already runs the size", () => {
    const pending = aWrite("uid-a", "dry-run", {
      subject: subjectFor(aPipe("a")),
      outcome: { type: "pending" },
    });
    const writes = someWrites([pending]);
    expect(actionsFor(aSnapshot([aPipe("a"), aPipe("b")], { writes }), trying)).toEqual(["dry run of b"]);
    expect(actionsFor(aSnapshot([aPipe("a")]), trying)).toEqual(["a 4000m/16Gi"]);
    const done = resizedTo("a", FOUR);
    expect(actionsFor(aSnapshot([done, aPipe("b"), aPipe("c")]), trying)).toEqual([
      "b 4000m/16Gi",
      "c 4000m/16Gi",
    ]);
  });
});

describe("before a rollout that stops the old pods first", () => {
  const trying = { ...DECIDE_OPTIONS, makesDryRuns: true };
  const first = { stopsOldPodsFirst: true };
  const accepted = (...pipes: PipeView[]): Partial<Snapshot> => ({
    writes: someWrites(
      pipes.map((pipe) => aWrite(pipe.metadata.uid, "dry-run", { subject: subjectFor(pipe) })),
    ),
  });
  /** Names of the pipes with a dry run, with a suffix if it checks the nodes. */
  const tried = (snapshot: Snapshot) =>
    decide(snapshot, trying).actions.flatMap((action) => {
      if (action.type !== "dry-run") return [];
      return `${action.pipe.metadata.name}${action.checksNodes ? " and nodes" : ""}`;
    });

  it("checks the nodes even for a single pipe, and then resizes it", () => {
    const pipe = aPipe("a", first);
    expect(actionsFor(aSnapshot([pipe]), trying)).toEqual(["dry run of a"]);
    expect(tried(aSnapshot([pipe]))).toEqual(["a and nodes"]);
    expect(actionsFor(aSnapshot([pipe], accepted(pipe)), trying)).toEqual(["a 4000m/16Gi"]);
  });

  it("checks the nodes for no other pipe, not even in the dry runs before a canary", () => {
    expect(tried(aSnapshot([aPipe("a", first), aPipe("b")]))).toEqual(["a and nodes", "b"]);
    expect(tried(aSnapshot([aPipe("a", { ...first, replicas: 0 })]))).toEqual([]);
  });

  it("checks the nodes even if another pipe already runs the size, but only for pipes that can start next, and others do not wait", () => {
    const done = resizedTo("a", FOUR);
    const [b, c] = [aPipe("b", first), aPipe("c")];
    expect(actionsFor(aSnapshot([done, b, c]), trying)).toEqual(["dry run of b", "c 4000m/16Gi"]);
    expect(tried(aSnapshot([done, b, c]))).toEqual(["b and nodes"]);
    expect(actionsFor(aSnapshot([done, b, c], accepted(b)), trying)).toEqual([
      "b 4000m/16Gi",
      "c 4000m/16Gi",
    ]);
    const rolling = ["e", "f", "g"].map((name) => rollingTo(name, FOUR));
    expect(tried(aSnapshot([done, b, ...rolling]))).toEqual([]);
  });

  it("does not check the nodes for a pipe whose old pods are already stopped", () => {
    const pipe = rollingTo("a", sizeOfCores(2), first);
    expect(actionsFor(aSnapshot([pipe]), trying)).toEqual(["a 4000m/16Gi"]);
  });

  const tooLarge = (changes: Partial<WriteRecord> = {}): Partial<Snapshot> => {
    const outcome = failed({ reason: "NoNodeLargeEnough", message: "too large" });
    const subject = subjectFor(aPipe("a", first));
    const record = { subject, lastAtMs: NOW_MS - 60_000, outcome, ...changes };
    return { writes: someWrites([aWrite("uid-a", "dry-run", record)]) };
  };

  it("does not resize a pipe that fits on no node, and reports a failure that holds back the others", () => {
    const decision = decide(aSnapshot([aPipe("a", first), aPipe("b")], tooLarge()), trying);
    expect(decision.actions).toEqual([]);
    expect(decision.sizing).toMatchObject({
      waitReason: "failure",
      assessments: [
        {
          state: "failed",
          failure: {
            reason: "NoNodeLargeEnough",
            message: "too large",
            attempts: 1,
            retryAtMs: NOW_MS + 4 * 60_000,
          },
        },
        { state: "waiting" },
      ],
    });
  });

  it("checks the nodes again after 5 minutes, doubling up to an hour, and sooner if the Deployment has changed", () => {
    const at = (agoMs: number, attempts: number, pipe = aPipe("a", first)) =>
      tried(aSnapshot([pipe], tooLarge({ attempts, lastAtMs: NOW_MS - agoMs })));
    expect(at(299_999, 1)).toEqual([]);
    expect(at(300_000, 1)).toEqual(["a and nodes"]);
    expect(at(599_999, 2)).toEqual([]);
    expect(at(3_600_000, 9)).toEqual(["a and nodes"]);
    const changed = aPipe("a", { ...first, metadata: { ...aPipe("a").metadata, generation: 2 } });
    expect(at(999, 1, changed)).toEqual([]);
    expect(at(1000, 1, changed)).toEqual(["a and nodes"]);
  });

  it("does not check the nodes in a requested retry", () => {
    const scaling = aScaling(4, { retryRequestedAtMs: NOW_MS });
    const pipe = aPipe("a", first);
    expect(tried(aSnapshot([pipe], { ...tooLarge(), scaling }))).toEqual(["a"]);
    expect(tried(aSnapshot([pipe, aPipe("b", first)], { ...tooLarge(), scaling }))).toEqual([
      "a",
      "b and nodes",
    ]);
    const later = aScaling(4, { retryRequestedAtMs: NOW_MS + 1 });
    expect(actionsFor(aSnapshot([pipe], { ...tooLarge(), scaling: later }), trying)).toEqual([]);
    const before = aScaling(4, { retryRequestedAtMs: NOW_MS - 300_001 });
    const due = tooLarge({ lastAtMs: NOW_MS - 300_000 });
    expect(tried(aSnapshot([pipe], { ...due, scaling: before }))).toEqual(["a and nodes"]);
  });
});
