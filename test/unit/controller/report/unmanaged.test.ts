import { describe, expect, it } from "vitest";
import { Reporter } from "../../../../src/controller/report/reporter.ts";
import type { Event } from "../../../../src/runtime/event-recorder.ts";
import { createLogger } from "../../../../src/telemetry/log.ts";
import { anApplier } from "../../../support/fixtures/applier.ts";
import { aPipe, aScaling, aSnapshot, POLICY } from "../../../support/fixtures/snapshot.ts";

const UNKNOWN = {
  ok: false,
  obstacle: { reason: "UnknownService", message: "There is no record." },
} as const;
const MALFORMED = { ok: false, obstacle: { reason: "MalformedRecord", message: "It is no JSON." } } as const;

function setup() {
  const { applier, caches } = anApplier(() => aScaling(4));
  const events: Event[] = [];
  const messages: string[] = [];
  const reporter = new Reporter({
    ...applier,
    caches,
    policy: POLICY,
    events: { record: (event) => events.push(event) },
    metrics: { passed: () => undefined, reported: () => undefined },
    log: createLogger("info", "controller", { write: (line) => messages.push(JSON.parse(line).msg) }),
  });
  return { reporter, caches, events, messages };
}

describe("a pipe that the controller does not manage", () => {
  const pipe = aPipe("a");
  const orphan = (tier: typeof UNKNOWN | typeof MALFORMED) =>
    aSnapshot([], { tier, namespace: undefined, scaling: undefined, orphans: [pipe] });

  it("gets one Event, and another one when the reason changes", async () => {
    const { reporter, events } = setup();
    for (const tier of [UNKNOWN, UNKNOWN, MALFORMED]) await reporter.report(orphan(tier), {});
    expect(events.map(({ reason }) => reason)).toEqual(["UnknownService", "MalformedRecord"]);
  });

  it("gets another Event after it was deleted and created again", async () => {
    const { reporter, caches, events } = setup();
    caches.pipes.of(pipe.kind).apply(pipe);
    await reporter.report(orphan(UNKNOWN), {});
    caches.pipes.of(pipe.kind).remove({ ...pipe, metadata: { ...pipe.metadata, resourceVersion: "2" } });
    await reporter.report(orphan(UNKNOWN), {});
    expect(events).toHaveLength(2);
  });
});

describe("a PipeScaling that the controller does not manage", () => {
  const scaling = aScaling(4);
  const snapshot = aSnapshot([], {
    tier: UNKNOWN,
    namespace: undefined,
    scaling: undefined,
    unmanaged: [scaling],
  });

  it("is reported once, and once more after it was managed in between", async () => {
    const { reporter, messages } = setup();
    await reporter.report(snapshot, {});
    await reporter.report(snapshot, {});
    expect(messages).toEqual(["the PipeScaling is left alone: There is no record."]);
    await reporter.report(aSnapshot([], { scaling }), {});
    await reporter.report(snapshot, {});
    expect(messages).toHaveLength(2);
  });
});
