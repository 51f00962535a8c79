import { Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { KubeUnreachableError } from "../../../src/kube/errors.ts";
import type { KubeObject } from "../../../src/kube/objects.ts";
import { pause } from "../../../src/runtime/clock.ts";
import { Reflector } from "../../../src/runtime/reflector.ts";
import { Store } from "../../../src/runtime/store.ts";
import { watchAges } from "../../../src/runtime/watch-ages.ts";
import { RuntimeMetrics } from "../../../src/telemetry/runtime-metrics.ts";
import { readinessOf } from "../../../src/telemetry/watch-readiness.ts";
import { FakeClock } from "../../support/fakes/fake-clock.ts";

const MINUTE_MS = 60_000;

describe("the age of a watch", () => {
  const clock = { monotonic: () => 100_000 };
  const informers = [
    { resource: "pods", isSynced: true, lastContact: 90_000 },
    { resource: "pods", isSynced: true, lastContact: 70_000 },
    { resource: "pods", isSynced: true, lastContact: 80_000 },
    { resource: "deployments", isSynced: true, lastContact: 99_000 },
    { resource: "configmaps", isSynced: true, lastContact: 99_000 },
    { resource: "configmaps", isSynced: false, lastContact: Number.NEGATIVE_INFINITY },
  ];

  it("is the age of the oldest informer of its kind, and infinite before the first list", () => {
    expect([...watchAges(informers, clock)]).toEqual([
      ["pods", 30_000],
      ["deployments", 1000],
      ["configmaps", Number.POSITIVE_INFINITY],
    ]);
  });

  it("is exported in seconds for each kind that has been listed", async () => {
    const registry = new Registry();
    const metrics = new RuntimeMetrics({ registry, name: "test", concurrency: 1 });
    metrics.watchAges(() => watchAges(informers, clock));
    const series = (await registry.metrics()).split("\n").filter((line) => line.startsWith("pipe_scaling_"));
    expect(series).toEqual([
      'pipe_scaling_watch_age_seconds{resource="pods"} 30',
      'pipe_scaling_watch_age_seconds{resource="deployments"} 1',
    ]);
  });
});

describe("the controller", () => {
  it("is not ready until every kind has been listed, and names the missing kinds", () => {
    const ages = new Map([
      ["pods", Number.POSITIVE_INFINITY],
      ["deployments", 0],
    ]);
    expect(readinessOf(ages)).toEqual({ ready: false, problem: "not read from the cluster yet: pods" });
  });

  it("is not ready after five minutes without contact, and names the kind", () => {
    const ages = (ageMs: number) =>
      new Map([
        ["pods", ageMs],
        ["deployments", 1000],
      ]);
    expect(readinessOf(ages(300_000))).toEqual({ ready: true });
    const problem = "no contact with the API server's watch of: pods (for 312 s)";
    expect(readinessOf(ages(312_000))).toEqual({ ready: false, problem });
  });
});

/** The API server sends bookmarks, is silent from now on in each open watch, or is unreachable. */
type Server = "bookmarks" | "silent" | "down";

/** A controller with one watch, whose server sends a bookmark every minute and can fail. */
function setup() {
  const clock = new FakeClock();
  const abort = new AbortController();
  const state: { server: Server } = { server: "bookmarks" };
  const line = (annotations: object) =>
    Buffer.from(
      `${JSON.stringify({ type: "BOOKMARK", object: { metadata: { resourceVersion: "1", annotations } } })}\n`,
    );
  async function* events(signal: AbortSignal, isInitial: boolean): AsyncGenerator<Buffer> {
    if (isInitial) yield line({ "k8s.io/initial-events-end": "true" });
    let isSilent = false;
    for (;;) {
      await pause(clock, MINUTE_MS, signal);
      signal.throwIfAborted();
      if (state.server === "down") throw new KubeUnreachableError("reset");
      isSilent ||= state.server === "silent";
      if (!isSilent) yield line({});
    }
  }
  const requireServer = () => {
    if (state.server === "down") throw new KubeUnreachableError("refused");
  };
  const reflector = new Reflector({
    client: {
      json: async <T>(): Promise<T> => {
        requireServer();
        return JSON.parse('{"metadata":{"resourceVersion":"1"},"items":[]}');
      },
      stream: async ({ query, signal }) => {
        requireServer();
        return events(signal, query?.["sendInitialEvents"] === true);
      },
    },
    resource: { apiVersion: "v1", plural: "pods" },
    store: new Store<KubeObject>(),
    project: (raw) => raw,
    clock,
    random: () => 0,
    onProblem: () => undefined,
  });
  const running = reflector.run(abort.signal);
  /** Returns for how many of the next minutes the controller is not ready, with one probe per second. */
  const unreadyAfter = async (minutes: number) => {
    let unready = 0;
    for (let second = 0; second < minutes * 60; second += 1) {
      await clock.advance(1000);
      if (!readinessOf(watchAges([reflector], clock)).ready) unready += 1;
    }
    return unready / 60;
  };
  const end = async () => {
    abort.abort();
    await clock.advance(0);
    await running;
  };
  return { state, unreadyAfter, end };
}

describe("the readiness of a controller", () => {
  it("does not change in normal operation", async () => {
    const { unreadyAfter, end } = setup();
    expect(await unreadyAfter(30)).toBe(0);
    await end();
  });

  it("is unaffected by a silent connection", async () => {
    const { state, unreadyAfter, end } = setup();
    await unreadyAfter(2);
    state.server = "silent";
    // Until the silent watch is aborted.
    expect(await unreadyAfter(2.9)).toBe(0);
    state.server = "bookmarks";
    expect(await unreadyAfter(10)).toBe(0);
    await end();
  });

  it("is unaffected by an API server that is down for two minutes", async () => {
    const { state, unreadyAfter, end } = setup();
    await unreadyAfter(2);
    state.server = "down";
    expect(await unreadyAfter(2)).toBe(0);
    state.server = "bookmarks";
    expect(await unreadyAfter(10)).toBe(0);
    await end();
  });

  it("ends five minutes after the last contact, and returns within half a minute of the next contact", async () => {
    const { state, unreadyAfter, end } = setup();
    await unreadyAfter(2);
    state.server = "down";
    const unready = await unreadyAfter(10);
    expect(unready).toBeGreaterThan(4.9);
    expect(unready).toBeLessThan(6.1);
    state.server = "bookmarks";
    expect(await unreadyAfter(10)).toBeLessThanOrEqual(0.5);
    await end();
  });
});
