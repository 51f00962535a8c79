import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { KubeRequest } from "../../../src/kube/client.ts";
import { KubeApiError } from "../../../src/kube/errors.ts";
import { type Event, EventRecorder } from "../../../src/runtime/event-recorder.ts";
import { FakeClock, settled } from "../../support/fakes/fake-clock.ts";

function setup({ respond = async () => undefined }: { respond?: () => Promise<unknown> } = {}) {
  const clock = new FakeClock();
  const calls: KubeRequest[] = [];
  const lost: string[] = [];
  const recorder = new EventRecorder({
    client: {
      json: async <T>(request: KubeRequest): Promise<T> => {
        calls.push(request);
        await respond();
        return JSON.parse(`{"metadata":{"name":"event-${calls.length}"}}`);
      },
    },
    clock,
    controller: "example.com/controller",
    instance: "me",
    fieldManager: "test",
    assertMayWrite: () => undefined,
    onLost: ({ note }) => lost.push(note),
  });
  return { clock, calls, lost, recorder };
}

function event(note: string, uid = "1"): Event {
  const regarding = { apiVersion: "v1", kind: "Thing", namespace: "ns", name: "thing", uid };
  return { regarding, type: "Warning", reason: "Broken", action: "Mend", note };
}

/** Returns the note that the API server receives. */
async function writtenNote(note: string, suffix: string): Promise<string> {
  const { calls, recorder } = setup();
  recorder.record({ ...event(note), suffix });
  await settled();
  const [call] = calls;
  const body: object = Object(call?.body);
  return "note" in body ? String(body.note) : "";
}

describe("an event recorder", () => {
  it("writes an event with all fields that the API server requires", async () => {
    const { calls, recorder } = setup();
    recorder.record(event("it broke"));
    await settled();
    expect(calls).toMatchObject([
      {
        method: "POST",
        path: "/apis/events.k8s.io/v1/namespaces/ns/events",
        body: {
          metadata: { generateName: "thing-", namespace: "ns" },
          eventTime: "2026-01-01T00:00:00.000000Z",
          reportingController: "example.com/controller",
          reason: "Broken",
          note: "it broke",
          regarding: { kind: "Thing", name: "thing" },
        },
      },
    ]);
  });

  it("counts a repeated event in the series of the first event for six minutes", async () => {
    const { clock, calls, recorder } = setup();
    for (const wait of [0, 1000, 359_000, 361_000]) {
      await clock.advance(wait);
      recorder.record(event("it broke"));
      await settled();
    }
    expect(calls.map((each) => each.method)).toEqual(["POST", "PATCH", "PATCH", "POST"]);
    expect(calls[2]).toMatchObject({
      path: "/apis/events.k8s.io/v1/namespaces/ns/events/event-1",
      body: { series: { count: 3, lastObservedTime: "2026-01-01T00:06:00.000000Z" } },
    });
  });

  it("writes a new event if the first one of its series was deleted", async () => {
    const { calls, lost, recorder } = setup({
      respond: async () => {
        if (calls.length === 2) throw new KubeApiError("PATCH", 404, "{}");
      },
    });
    for (let count = 0; count < 3; count += 1) {
      recorder.record(event("it broke"));
      await settled();
    }
    expect(calls.map((each) => each.method)).toEqual(["POST", "PATCH", "POST", "PATCH"]);
    expect(calls.at(-1)?.path).toBe("/apis/events.k8s.io/v1/namespaces/ns/events/event-3");
    expect(lost).toEqual([]);
  });

  it("counts an event that is repeated before the first one is written", async () => {
    const { clock, calls, recorder } = setup({
      respond: () => new Promise<void>((resolve) => clock.after(1000, resolve)),
    });
    for (let count = 0; count < 3; count += 1) recorder.record(event("it broke"));
    await clock.advance(3000);
    expect(calls.map((each) => each.method)).toEqual(["POST", "PATCH", "PATCH"]);
    expect(calls.at(-1)).toMatchObject({ body: { series: { count: 3 } } });
  });

  it("limits the events of one object without affecting other objects", async () => {
    const { clock, calls, lost, recorder } = setup();
    for (let index = 0; index < 15; index += 1) recorder.record(event(`broken ${index}`));
    recorder.record(event("broken too", "2"));
    await settled();
    expect(calls).toHaveLength(11);
    expect(lost).toHaveLength(5);
    await clock.advance(60_000);
    recorder.record(event("broken later"));
    recorder.record(event("broken last"));
    expect(calls).toHaveLength(12);
  });

  it("reports an event that is dropped at the limit or cannot be written", async () => {
    const stuck = setup({ respond: () => new Promise(() => undefined) });
    for (let index = 0; index < 120; index += 1) stuck.recorder.record(event("broken", `uid-${index}`));
    expect(stuck.lost).toHaveLength(20);
    const broken = setup({ respond: () => Promise.reject(new Error("no")) });
    broken.recorder.record(event("broken"));
    await settled();
    expect(broken.lost).toEqual(["broken"]);
  });

  it.each([
    ["written", async () => undefined],
    ["rejected", () => Promise.reject(new Error("no"))],
  ])("writes any number of events if each is %s before the next one", async (_, respond) => {
    const { calls, recorder } = setup({ respond });
    for (let index = 0; index < 150; index += 1) {
      recorder.record(event("broken", `uid-${index}`));
      await settled();
    }
    expect(calls).toHaveLength(150);
  });

  it("truncates a note to 1,024 bytes, not characters, and keeps its suffix", async () => {
    const note = await writtenNote("ä".repeat(600), " (request 0b7f6c1e)");
    expect(Buffer.byteLength(note)).toBeLessThanOrEqual(1024);
    expect(note).toMatch(/^ä{500,502}… \(request 0b7f6c1e\)$/);
  });

  it("truncates any note to 1,024 bytes between characters, and keeps its suffix", async () => {
    const text = (maxLength: number) => fc.string({ unit: "binary", maxLength, size: "max" });
    await fc.assert(
      fc.asyncProperty(text(1500), text(128), async (note, suffix) => {
        const written = await writtenNote(note, suffix);
        expect(Buffer.byteLength(written)).toBeLessThanOrEqual(1024);
        expect(written.isWellFormed()).toBe(true);
        expect(written.endsWith(suffix)).toBe(true);
        const kept = written.slice(0, written.length - suffix.length);
        if (Buffer.byteLength(note + suffix) <= 1024) expect(kept).toBe(note);
        else {
          expect(kept.endsWith("…")).toBe(true);
          expect(note.startsWith(kept.slice(0, -1))).toBe(true);
          expect(Buffer.byteLength(written)).toBeGreaterThan(1020);
        }
      }),
    );
  });

  it("truncates a suffix of more than 512 bytes", async () => {
    const note = await writtenNote("it broke", "x".repeat(5000));
    expect(note).toBe(`it broke${"x".repeat(509)}…`);
  });
});
