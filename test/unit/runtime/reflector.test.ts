import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { KubeRequest } from "../../../src/kube/client.ts";
import { KubeApiError, KubeUnreachableError } from "../../../src/kube/errors.ts";
import type { KubeObject } from "../../../src/kube/objects.ts";
import { pause } from "../../../src/runtime/clock.ts";
import { Outage } from "../../../src/runtime/outage.ts";
import { Reflector } from "../../../src/runtime/reflector.ts";
import { Store } from "../../../src/runtime/store.ts";
import type { WatchEvent } from "../../../src/runtime/watch-stream.ts";
import { FakeClock, settled } from "../../support/fakes/fake-clock.ts";

const MINUTE_MS = 60_000;

interface Step {
  readonly list?: unknown;
  readonly watch?: FakeWatch;
  readonly error?: Error;
  /** Delay of the response to a list. */
  readonly takesMs?: number;
}

/** A watch whose chunks are sent by the test. */
class FakeWatch implements AsyncIterable<Buffer> {
  readonly #chunks: (Buffer | Error | "end")[] = [];
  #wake: () => void = () => undefined;

  send(event: unknown): void {
    this.sendBytes(Buffer.from(`${JSON.stringify(event)}\n`));
  }

  sendBytes(bytes: Buffer): void {
    this.#push(bytes);
  }

  end(): void {
    this.#push("end");
  }

  fail(error: Error): void {
    this.#push(error);
  }

  #push(chunk: Buffer | Error | "end"): void {
    this.#chunks.push(chunk);
    this.#wake();
  }

  listen(signal: AbortSignal): this {
    signal.addEventListener("abort", () => this.fail(signal.reason), { once: true });
    return this;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    for (;;) {
      const chunk = this.#chunks.shift();
      if (chunk === "end") return;
      if (chunk instanceof Error) throw chunk;
      if (chunk) yield chunk;
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}

function object(name: string, version: number): KubeObject {
  return { metadata: { name, namespace: "ns", uid: name, resourceVersion: String(version) } };
}

function unreadable(name: string, version: number): KubeObject {
  const { metadata } = object(name, version);
  return { metadata: { ...metadata, labels: { broken: "yes" } } };
}

function listOf(version: number, items: KubeObject[], next?: string) {
  return { metadata: { resourceVersion: String(version), ...(next ? { continue: next } : {}) }, items };
}

function added(name: string, version: number): WatchEvent<KubeObject> {
  return { type: "ADDED", object: object(name, version) };
}

/** @param isEnd marks the end of the initial events */
function bookmark(version: number, isEnd: boolean): WatchEvent<KubeObject> {
  const annotations = isEnd ? { "k8s.io/initial-events-end": "true" } : {};
  return {
    type: "BOOKMARK",
    object: { metadata: { name: "", uid: "", resourceVersion: String(version), annotations } },
  };
}

/** The response of Kubernetes 1.31, which cannot stream lists. */
const NO_INITIAL_EVENTS = new KubeApiError(
  "GET",
  422,
  JSON.stringify({ details: { causes: [{ reason: "FieldValueForbidden", field: "sendInitialEvents" }] } }),
);

interface SetupOptions {
  readonly canStream?: boolean;
  readonly clock?: FakeClock;
  readonly outage?: Outage;
  readonly isRemovable?: boolean;
  /** The default is the shortest delays: 0.8 s, 1.6 s, 3.2 s, …, 15 s. */
  readonly random?: () => number;
}

function setup(
  script: Step[],
  { canStream = false, clock = new FakeClock(), outage, isRemovable, random = () => 1 }: SetupOptions = {},
) {
  const abort = new AbortController();
  const calls: string[] = [];
  const problems: unknown[] = [];
  const rollbacks: string[] = [];
  const store = new Store<KubeObject>();
  const names = () => [...store.values()].map((each) => each.metadata.name).sort();
  const step = (request: KubeRequest): Step => {
    const { watch, resourceVersion, limit, continue: next, sendInitialEvents } = request.query ?? {};
    if (sendInitialEvents && !canStream) throw NO_INITIAL_EVENTS;
    calls.push(
      watch
        ? `watch ${resourceVersion ?? "all"}`
        : ["list", limit === 1 ? "head" : "", next].filter(Boolean).join(" "),
    );
    const found = script.shift();
    if (!found) throw new KubeUnreachableError("the script is over");
    if (found.error) throw found.error;
    return found;
  };
  const reflector = new Reflector({
    client: {
      json: async <T>(request: KubeRequest): Promise<T> => {
        const { list, takesMs = 0 } = step(request);
        if (takesMs > 0) await pause(clock, takesMs, abort.signal);
        return JSON.parse(JSON.stringify(list));
      },
      stream: async (request: KubeRequest & { readonly signal: AbortSignal }) =>
        (step(request).watch ?? new FakeWatch()).listen(request.signal),
    },
    resource: { apiVersion: "v1", plural: "things" },
    store,
    project: (raw) => {
      if (raw.metadata.name === "broken" || raw.metadata.labels?.["broken"]) throw new Error("broken");
      return raw;
    },
    clock,
    outage,
    ...(isRemovable === undefined ? {} : { isRemovable }),
    random,
    onProblem: (problem) => problems.push(problem),
    onEtcdRollback: () => rollbacks.push(names().join()),
  });
  const running = reflector.run(abort.signal);
  const end = async () => {
    abort.abort();
    await clock.advance(0);
    await running;
  };
  return { clock, calls, problems, rollbacks, store, reflector, names, end };
}

describe("a reflector", () => {
  it("skips the event of its own write without reading it, and continues from its version", async () => {
    const first = new FakeWatch();
    const harness = setup([{ list: listOf(10, []) }, { watch: first }, { watch: new FakeWatch() }]);
    await settled();
    harness.store.observe(object("ours", 11));
    // Reading the event would fail and be reported as a problem.
    first.send({ type: "MODIFIED", object: object("broken", 11) });
    first.end();
    await harness.clock.advance(1000);
    expect(harness.calls.at(-1)).toBe("watch 11");
    expect(harness.problems).toEqual([]);
    expect(harness.store.isOurs("11")).toBe(false);
    await harness.end();
  });

  it("reports an object that it cannot read, and keeps all others", async () => {
    const watch = new FakeWatch();
    const harness = setup([{ list: listOf(10, [object("broken", 1), object("b", 2)]) }, { watch }]);
    await settled();
    watch.send({ type: "ADDED", object: object("broken", 11) });
    watch.send({ type: "ADDED", object: object("c", 12) });
    await settled();
    expect(harness.names()).toEqual(["b", "c"]);
    expect(harness.problems.map(String)).toEqual(
      Array(2).fill(
        "UnreadableObjectError: /api/v1/things: ns/broken cannot be read, so it counts as deleted",
      ),
    );
    await harness.end();
  });

  it("no longer has an object of which a new version cannot be read, until one can be", async () => {
    const watch = new FakeWatch();
    const harness = setup([{ list: listOf(10, [object("a", 1), object("b", 2)]) }, { watch }]);
    await settled();
    watch.send({ type: "MODIFIED", object: unreadable("a", 11) });
    await settled();
    expect(harness.names()).toEqual(["b"]);
    watch.send({ type: "MODIFIED", object: object("a", 12) });
    await settled();
    expect(harness.names()).toEqual(["a", "b"]);
    await harness.end();
  });

  it("no longer has an object of which the last version cannot be read", async () => {
    const watch = new FakeWatch();
    const harness = setup([{ list: listOf(10, [object("a", 1), object("b", 2)]) }, { watch }]);
    await settled();
    watch.send({ type: "DELETED", object: unreadable("a", 11) });
    await settled();
    expect(harness.names()).toEqual(["b"]);
    expect(harness.problems).toEqual([]);
    await harness.end();
  });

  it("does not have an object that becomes unreadable among the initial events", async () => {
    const watch = new FakeWatch();
    const harness = setup([{ watch }], { canStream: true });
    for (const event of [added("a", 1), added("b", 2)]) watch.send(event);
    watch.send({ type: "MODIFIED", object: unreadable("a", 3) });
    watch.send(bookmark(3, true));
    await settled();
    expect(harness.names()).toEqual(["b"]);
    await harness.end();
  });

  it("lists page by page, then watches from the version of the list", async () => {
    const watch = new FakeWatch();
    const harness = setup([
      { list: listOf(10, [object("a", 1)], "more") },
      { list: listOf(10, [object("b", 2)]) },
      { watch },
    ]);
    await harness.reflector.synced;
    await settled();
    watch.send({ type: "ADDED", object: object("c", 11) });
    watch.send({ type: "DELETED", object: object("a", 12) });
    await settled();
    expect(harness.calls).toEqual(["list", "list more", "watch 10"]);
    expect(harness.names()).toEqual(["b", "c"]);
    await harness.end();
  });

  it("reads lines that the network splits or joins anywhere", async () => {
    const watch = new FakeWatch();
    const harness = setup([{ list: listOf(1, []) }, { watch }]);
    await settled();
    const lines = [object("ä", 2), object("b", 3)].map((each) =>
      JSON.stringify({ type: "ADDED", object: each }),
    );
    const bytes = Buffer.from(`${lines.join("\n")}\n`);
    for (const byte of bytes) watch.sendBytes(Buffer.from([byte]));
    await settled();
    expect(harness.names()).toEqual(["b", "ä"]);
    await harness.end();
  });

  it("continues immediately from the last version, bookmarks included, if the server ends a watch after a second", async () => {
    const first = new FakeWatch();
    const harness = setup([{ list: listOf(10, []) }, { watch: first }, { watch: new FakeWatch() }]);
    await settled();
    first.send({ type: "ADDED", object: object("a", 11) });
    first.send({ type: "BOOKMARK", object: { metadata: { resourceVersion: "40" } } });
    await harness.clock.advance(1000);
    first.end();
    await settled();
    expect(harness.calls).toEqual(["list", "watch 10", "watch 40"]);
    expect(harness.problems).toEqual([]);
    await harness.end();
  });

  it("backs off if the server ends each watch immediately", async () => {
    const watches = Array.from({ length: 20 }, () => {
      const watch = new FakeWatch();
      watch.end();
      return { watch };
    });
    const harness = setup([{ list: listOf(10, []) }, ...watches]);
    // The watches start 0, 0.8, 2.4, 5.6, 12, 24.8, 39.8 and 54.8 s after the list.
    await harness.clock.advance(54_799);
    expect(harness.calls).toHaveLength(8);
    await harness.clock.advance(1);
    expect(harness.calls).toHaveLength(9);
    await harness.end();
  });

  it("lists again when its position is too old, and removes the objects that were deleted in the meantime", async () => {
    const first = new FakeWatch();
    const harness = setup([
      { list: listOf(10, [object("a", 1), object("b", 2)]) },
      { watch: first },
      { list: listOf(99, [object("b", 2)]) },
      { watch: new FakeWatch() },
    ]);
    await settled();
    first.send({ type: "ERROR", object: { code: 410, reason: "Expired" } });
    await harness.clock.advance(1000);
    expect(harness.calls).toEqual(["list", "watch 10", "list", "watch 99"]);
    expect(harness.names()).toEqual(["b"]);
    expect(harness.rollbacks).toEqual([]);
    await harness.end();
  });

  it("reports every error, and retries with growing delays", async () => {
    const harness = setup([
      { error: new KubeUnreachableError("down") },
      { error: new KubeApiError("GET", 500, "{}") },
      { list: listOf(10, [object("a", 1)]) },
      { watch: new FakeWatch() },
    ]);
    await harness.clock.advance(2399);
    expect(harness.reflector.isSynced).toBe(false);
    await harness.clock.advance(1);
    expect(harness.reflector.isSynced).toBe(true);
    expect(harness.problems).toHaveLength(2);
    await harness.end();
  });

  it.each(["86400", "1e300"])("waits for a minute if Retry-After is %s", async (retryAfterHeader) => {
    const harness = setup([
      { error: new KubeApiError("GET", 503, "{}", { retryAfterHeader }) },
      { list: listOf(10, [object("a", 1)]) },
      { watch: new FakeWatch() },
    ]);
    await harness.clock.advance(59_000);
    expect(harness.calls).toHaveLength(1);
    await harness.clock.advance(2000);
    expect(harness.names()).toEqual(["a"]);
    await harness.end();
  });

  it("waits for the time in Retry-After", async () => {
    const harness = setup([
      { error: new KubeApiError("GET", 429, "{}", { retryAfterHeader: "7" }) },
      { list: listOf(1, []) },
      { watch: new FakeWatch() },
    ]);
    await harness.clock.advance(6999);
    expect(harness.calls).toHaveLength(1);
    await harness.clock.advance(1);
    expect(harness.reflector.isSynced).toBe(true);
    await harness.end();
  });

  it("continues from its position after an error if the version of the server is not older", async () => {
    const first = new FakeWatch();
    const harness = setup([
      { list: listOf(10, []) },
      { watch: first },
      { list: listOf(30, []) },
      { watch: new FakeWatch() },
    ]);
    await settled();
    first.fail(new Error("reset"));
    await harness.clock.advance(1000);
    expect(harness.calls).toEqual(["list", "watch 10", "list head", "watch 10"]);
    await harness.end();
  });

  it.each([
    ["the server was down", new KubeUnreachableError("refused")],
    ["the load balancer had no backend", new KubeApiError("GET", 503, "{}")],
  ])("lists again after %s, because etcd may have been restored in the meantime", async (_, error) => {
    const first = new FakeWatch();
    const harness = setup([
      { list: listOf(100, [object("a", 90), object("b", 50)]) },
      { watch: first },
      { error },
      { list: listOf(110, [object("a", 40)]) },
      { watch: new FakeWatch() },
    ]);
    await settled();
    first.fail(new Error("reset"));
    await harness.clock.advance(2400);
    expect(harness.calls.slice(2)).toEqual(["list head", "list", "watch 110"]);
    expect(harness.store.get("ns/a")?.metadata.resourceVersion).toBe("40");
    expect(harness.names()).toEqual(["a"]);
    await harness.end();
  });

  it("replaces its contents after an etcd rollback, and reports the rollback first", async () => {
    const first = new FakeWatch();
    const harness = setup([
      { list: listOf(100, [object("a", 90), object("b", 50)]) },
      { watch: first },
      { list: listOf(60, []) },
      { list: listOf(60, [object("a", 40)]) },
      { watch: new FakeWatch() },
    ]);
    await settled();
    first.fail(new Error("reset"));
    await harness.clock.advance(1000);
    expect(harness.calls.slice(2)).toEqual(["list head", "list", "watch 60"]);
    expect(harness.store.get("ns/a")?.metadata.resourceVersion).toBe("40");
    expect(harness.names()).toEqual(["a"]);
    expect(harness.rollbacks, "reported once, before the store shows it").toEqual(["a,b"]);
    await harness.end();
  });

  it("lists again after three minutes without a bookmark", async () => {
    const harness = setup([
      { list: listOf(100, [object("a", 90)]) },
      { watch: new FakeWatch() },
      { list: listOf(60, []) },
      { watch: new FakeWatch() },
    ]);
    await harness.clock.advance(179_999);
    expect(harness.calls).toHaveLength(2);
    await harness.clock.advance(1000);
    expect(harness.calls.slice(2)).toEqual(["list", "watch 60"]);
    expect(harness.names()).toEqual([]);
    expect(harness.rollbacks).toEqual(["a"]);
    await harness.end();
  });

  it("lists again three minutes after the last of many bookmarks", async () => {
    const watch = new FakeWatch();
    const harness = setup([{ list: listOf(10, []) }, { watch }]);
    for (let minute = 0; minute < 10; minute += 1) {
      await harness.clock.advance(MINUTE_MS);
      watch.send(bookmark(10, false));
    }
    await harness.clock.advance(179_999);
    expect(harness.calls).toEqual(["list", "watch 10"]);
    await harness.clock.advance(1000);
    expect(harness.calls.slice(2)).toEqual(["list"]);
    await harness.end();
  });
});

/** A watch without bookmarks, with an end or an error after a fixed time, and perhaps an event half-way. */
class CutWatch extends FakeWatch {
  readonly #cut: () => void;

  constructor(cut: (watch: FakeWatch) => void) {
    super();
    this.#cut = () => cut(this);
  }

  override listen(signal: AbortSignal): this {
    this.#cut();
    return super.listen(signal);
  }
}

describe("a reflector whose watches are all cut before their first bookmark", () => {
  interface Cuts {
    readonly afterMs: number;
    readonly isClean: boolean;
    readonly hasEvents: boolean;
    readonly random: () => number;
  }

  /** Runs it for an hour. */
  async function cutForAnHour({ afterMs, isClean, hasEvents, random }: Cuts) {
    const clock = new FakeClock();
    let version = 10;
    const step = (): Step => ({
      get list() {
        return listOf(version, []);
      },
      watch: new CutWatch((watch) => {
        clock.after(afterMs / 2, () => {
          version += 1;
          if (hasEvents) watch.send(added("a", version));
        });
        clock.after(afterMs, () => (isClean ? watch.end() : watch.fail(new Error("reset"))));
      }),
    });
    const harness = setup(Array.from({ length: 5000 }, step), { clock, random });
    await settled();
    let maxAgeMs = 0;
    for (let second = 0; second < 3600; second += 1) {
      await clock.advance(1000);
      maxAgeMs = Math.max(maxAgeMs, clock.monotonic() - harness.reflector.lastContact);
    }
    await harness.end();
    return { maxAgeMs, lists: harness.calls.filter((call) => call === "list").length };
  }

  const ENDS = [
    { isClean: false, random: () => 1 },
    // The longest delays before retries.
    { isClean: false, random: () => 0 },
    { isClean: true, random: () => 1 },
  ];
  const CUTS = [1000, 35_000, 59_000].flatMap((afterMs) => ENDS.map((end) => ({ ...end, afterMs })));

  it.each(CUTS)(
    "lists a quiet kind again, at most once in 90 s: after $afterMs ms, clean $isClean",
    async (cuts) => {
      const { maxAgeMs, lists } = await cutForAnHour({ ...cuts, hasEvents: false });
      expect(maxAgeMs).toBeLessThan(3 * MINUTE_MS);
      expect(lists).toBeGreaterThan(1);
      expect(lists).toBeLessThanOrEqual(1 + 3600 / 90);
    },
  );

  it.each(CUTS)("lists a kind with events only once: after $afterMs ms, clean $isClean", async (cuts) => {
    const { maxAgeMs, lists } = await cutForAnHour({ ...cuts, hasEvents: true });
    expect(maxAgeMs).toBeLessThan(MINUTE_MS + 30_000);
    expect(lists).toBe(1);
  });
});

/** The outcome of a call or a watch. */
type Outcome =
  | "error"
  | "gone"
  | "cut"
  | "end"
  | "event, cut"
  | "event, end"
  | "event, gone"
  | "list, cut"
  | "list, gone";
const OUTCOMES: readonly Outcome[] = [
  "error",
  "gone",
  "cut",
  "end",
  "event, cut",
  "event, end",
  "event, gone",
  "list, cut",
  "list, gone",
];

/** A reflector whose server fails with these outcomes, always immediately. */
function faultyServer(
  outcomeOf: (call: number) => Outcome,
  { canStream = true, random = (): number => 1, outage = new Outage() } = {},
) {
  const clock = new FakeClock();
  const abort = new AbortController();
  const calls: { readonly type: "list" | "head" | "watch"; readonly at: number }[] = [];
  const respond = (type: "list" | "head" | "watch"): Outcome => {
    calls.push({ type, at: clock.monotonic() });
    const outcome = outcomeOf(calls.length);
    if (outcome === "error") throw new KubeApiError("GET", 500, "{}");
    if (outcome === "gone") throw new KubeApiError("GET", 410, "{}");
    return outcome;
  };
  let version = 100;
  const nextVersion = () => {
    version += 1;
    return version;
  };
  const reflector = new Reflector({
    client: {
      json: async <T>({ query }: KubeRequest): Promise<T> => {
        respond(query?.["limit"] === 1 ? "head" : "list");
        return JSON.parse(JSON.stringify(listOf(nextVersion(), [])));
      },
      stream: async ({ query, signal }: KubeRequest & { readonly signal: AbortSignal }) => {
        const isInitial = query?.["sendInitialEvents"] === true;
        if (isInitial && !canStream) throw NO_INITIAL_EVENTS;
        const [what, end = what] = respond(isInitial ? "list" : "watch").split(", ");
        const watch = new FakeWatch();
        if (what === "event") watch.send(added("a", nextVersion()));
        if (what === "list") watch.send(bookmark(nextVersion(), true));
        if (end === "gone") watch.send({ type: "ERROR", object: { code: 410, reason: "Expired" } });
        else if (end === "end") watch.end();
        else watch.fail(new Error("reset by peer"));
        return watch.listen(signal);
      },
    },
    resource: { apiVersion: "v1", plural: "things" },
    store: new Store<KubeObject>(),
    project: (raw) => raw,
    clock,
    random,
    outage,
    onProblem: () => undefined,
  });
  const running = reflector.run(abort.signal);
  const callsPerMinute = (type: "list" | "head" | "watch") =>
    calls.filter((call) => call.type === type && call.at > clock.monotonic() - MINUTE_MS).length;
  const end = async () => {
    abort.abort();
    await clock.advance(0);
    await running;
  };
  return { clock, calls, callsPerMinute, end };
}

describe("a reflector of a kind that is removed from the cluster", () => {
  const removed = () => new KubeApiError("GET", 404, "404 page not found");
  const isRemovable = true;

  it.each([
    ["pages", false],
    ["events", true],
  ])("is empty and current, and says so once, until the kind is back (%s)", async (_, canStream) => {
    const [first, later] = [new FakeWatch(), new FakeWatch()];
    const script: Step[] = canStream
      ? [{ watch: first }]
      : [{ list: listOf(10, [object("a", 5)]) }, { watch: first }];
    script.push(...Array.from({ length: 40 }, () => ({ error: removed() })));
    const { clock, names, problems, rollbacks, reflector } = setup(script, { canStream, isRemovable });
    await clock.advance(0);
    if (canStream) for (const event of [added("a", 5), bookmark(10, true)]) first.send(event);
    await clock.advance(20_000);
    expect(names()).toEqual(["a"]);
    first.end();
    await clock.advance(5 * MINUTE_MS);
    expect([names(), problems.length, rollbacks]).toEqual([[], 1, []]);
    expect(clock.monotonic() - reflector.lastContact).toBeLessThanOrEqual(30_000);
    script.splice(0, script.length);
    script.push(...(canStream ? [] : [{ list: listOf(7, [object("b", 6)]) }]), { watch: later });
    await clock.advance(MINUTE_MS);
    if (canStream) for (const event of [added("b", 6), bookmark(7, true)]) later.send(event);
    await clock.advance(0);
    expect([names(), problems.length, rollbacks]).toEqual([["b"], 1, []]);
    script.push({ error: removed() });
    later.end();
    await clock.advance(100);
    expect([names(), problems.length]).toEqual([[], 2]);
  });

  it("is synced if the kind was removed before the first list", async () => {
    const { clock, reflector } = setup([{ error: removed() }], { isRemovable });
    await clock.advance(0);
    expect(reflector.isSynced).toBe(true);
    await reflector.synced;
  });

  it.each([
    ["any other error", new KubeApiError("GET", 503, "{}"), true],
    ["a 404 of a kind that the process needs", removed(), false],
  ])("keeps its objects, and is not current, after %s", async (_, error, removable) => {
    const watch = new FakeWatch();
    const errors = Array.from({ length: 40 }, () => ({ error }));
    const script: Step[] = [{ list: listOf(10, [object("a", 5)]) }, { watch }, ...errors];
    const { clock, names, problems, reflector } = setup(script, { isRemovable: removable });
    await clock.advance(0);
    watch.end();
    await clock.advance(5 * MINUTE_MS);
    expect(names()).toEqual(["a"]);
    expect(problems.length).toBeGreaterThan(5);
    expect(clock.monotonic() - reflector.lastContact).toBe(5 * MINUTE_MS);
  });
});

describe("the number of calls of a reflector", () => {
  it.each<[string, Outcome]>([
    ["ends the initial list early", "event, end"],
    ["resets the connection during the initial list", "event, cut"],
    ["reports 410 right after the initial list", "list, gone"],
  ])("is at most ten lists in the first minute if the server %s", async (_, outcome) => {
    const server = faultyServer(() => outcome);
    await server.clock.advance(MINUTE_MS);
    expect(server.callsPerMinute("list")).toBeGreaterThan(1);
    expect(server.callsPerMinute("list")).toBeLessThanOrEqual(10);
    await server.end();
  });

  it("is bounded for any sequence of failures", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(...OUTCOMES), { minLength: 1, maxLength: 6 }),
        fc.boolean(),
        fc.double({ min: 0, max: 1, noNaN: true }),
        async (outcomes, canStream, random) => {
          const outcomeOf = (call: number) => outcomes[call % outcomes.length] ?? "error";
          const server = faultyServer(outcomeOf, { canStream, random: () => random });
          for (let minute = 0; minute < 6; minute += 1) {
            await server.clock.advance(MINUTE_MS);
            expect(server.callsPerMinute("list")).toBeLessThanOrEqual(10);
            expect(server.callsPerMinute("head")).toBeLessThanOrEqual(10);
            expect(server.callsPerMinute("watch")).toBeLessThanOrEqual(61);
          }
          await server.end();
        },
      ),
      { numRuns: 100 },
    );
  });

  it("is one retry within 1.6 s after the first failure in two minutes", async () => {
    const watches = [new FakeWatch(), new FakeWatch(), new FakeWatch()];
    const harness = setup([
      ...Array<Step>(5).fill({ error: new KubeApiError("GET", 500, "{}") }),
      { list: listOf(10, []) },
      ...watches.flatMap((watch): Step[] => [{ watch }, { list: listOf(99, []) }]),
    ]);
    // 0.8 + 1.6 + 3.2 + 6.4 + 12.8 s
    await harness.clock.advance(24_800);
    expect(harness.calls.at(-1)).toBe("watch 10");
    await harness.clock.advance(MINUTE_MS);
    watches[0]?.send(bookmark(10, false));
    await harness.clock.advance(59_999);
    watches[0]?.fail(new Error("reset"));
    await harness.clock.advance(14_999);
    expect(harness.calls, "one millisecond too early").toHaveLength(7);
    await harness.clock.advance(1);
    expect(harness.calls.slice(7)).toEqual(["list head", "watch 10"]);
    await harness.clock.advance(MINUTE_MS);
    watches[1]?.send(bookmark(99, false));
    await harness.clock.advance(MINUTE_MS);
    watches[1]?.fail(new Error("reset"));
    await harness.clock.advance(800);
    expect(harness.calls.slice(9)).toEqual(["list head", "watch 99"]);
    await harness.end();
  });

  it("is one watch per second if each watch ends after an event", async () => {
    const server = faultyServer((call) => (call === 1 ? "list, cut" : "event, end"));
    await server.clock.advance(MINUTE_MS);
    await server.clock.advance(MINUTE_MS);
    expect(server.callsPerMinute("watch")).toBeGreaterThan(55);
    expect(server.callsPerMinute("watch")).toBeLessThanOrEqual(61);
    expect(server.callsPerMinute("list")).toBe(0);
    await server.end();
  });
});

describe("reflectors of one process", () => {
  const UNREACHABLE: Step = { error: new KubeUnreachableError("connect ECONNREFUSED") };

  /** One that waits for 3.2 s after its third failure, and then becomes served by the script. */
  async function waiting(script: Step[], failure: Step = UNREACHABLE) {
    const outage = new Outage();
    const harness = setup([...Array<Step>(3).fill(failure), ...script], { outage });
    await harness.clock.advance(2500);
    expect(harness.calls).toHaveLength(3);
    const others: (() => Promise<void>)[] = [];
    return {
      ...harness,
      outage,
      /** Another reflector fails, and recovers after 800 ms. */
      recoverAnother: async () => {
        const script = [UNREACHABLE, { list: listOf(10, []) }, { watch: new FakeWatch() }];
        const other = setup(script, { clock: harness.clock, outage });
        others.push(other.end);
        await harness.clock.advance(800);
        expect(other.calls.at(-1)).toBe("watch 10");
      },
      end: async () => {
        for (const end of [...others, harness.end]) await end();
      },
    };
  }

  it.each<[string, Step]>([
    ["is unreachable", UNREACHABLE],
    ["responds 503", { error: new KubeApiError("GET", 503, "{}") }],
    [
      "responds 403, because its permissions are not loaded yet",
      { error: new KubeApiError("GET", 403, "{}") },
    ],
  ])("retry at once when one of them recovers after the server %s", async (_, failure) => {
    const harness = await waiting([{ list: listOf(10, []) }, { watch: new FakeWatch() }], failure);
    await harness.recoverAnother();
    expect(harness.calls.slice(3)).toEqual(["list", "watch 10"]);
    await harness.end();
  });

  it("retry at once when a watch of one of them goes on without a list", async () => {
    const harness = await waiting([{ list: listOf(10, []) }, { watch: new FakeWatch() }]);
    const broken = new FakeWatch();
    const list = { list: listOf(10, []) };
    const script = [list, { watch: broken }, list, { watch: new FakeWatch() }];
    const other = setup(script, { clock: harness.clock, outage: harness.outage });
    await settled();
    broken.fail(new Error("the connection was reset"));
    await harness.clock.advance(800);
    expect(other.calls).toEqual(["list", "watch 10", "list head", "watch 10"]);
    expect(harness.calls.slice(3)).toEqual(["list", "watch 10"]);
    await other.end();
    await harness.end();
  });

  it("wait for the rest of their pause if the early attempt fails, too", async () => {
    const harness = await waiting([UNREACHABLE, { list: listOf(10, []) }, { watch: new FakeWatch() }]);
    await harness.recoverAnother();
    expect(harness.calls).toHaveLength(4);
    await harness.recoverAnother();
    // The third failure was at 2.4 s.
    await harness.clock.advance(5600 - 4101);
    expect(harness.calls, "one millisecond too early").toHaveLength(4);
    await harness.clock.advance(1);
    expect(harness.calls.slice(4)).toEqual(["list", "watch 10"]);
    await harness.end();
  });

  it("retry at once in a later pause, too, which is as long as without the early attempt", async () => {
    const served = [{ list: listOf(10, []) }, { watch: new FakeWatch() }];
    const harness = await waiting([UNREACHABLE, UNREACHABLE, ...served]);
    await harness.recoverAnother();
    await harness.clock.advance(5600 - 3300);
    expect(harness.calls).toHaveLength(5);
    await harness.clock.advance(5599);
    expect(harness.calls, "in the pause of 6.4 s").toHaveLength(5);
    await harness.recoverAnother();
    expect(harness.calls.slice(5)).toEqual(["list", "watch 10"]);
    await harness.end();
  });

  it("wait for their whole pause if another one only starts", async () => {
    const harness = await waiting([{ list: listOf(10, []) }, { watch: new FakeWatch() }]);
    const script = [{ list: listOf(10, []) }, { watch: new FakeWatch() }];
    const other = setup(script, { clock: harness.clock, outage: harness.outage });
    await settled();
    expect(other.calls.at(-1)).toBe("watch 10");
    expect(harness.calls).toHaveLength(3);
    await other.end();
    await harness.end();
  });

  it.each([1, 3, 7])("wait for the %i s in Retry-After in any case, and no longer", async (seconds) => {
    const outage = new Outage();
    const busy = new KubeApiError("GET", 429, "{}", { retryAfterHeader: `${seconds}` });
    const served = [{ list: listOf(10, []) }, { watch: new FakeWatch() }];
    const harness = setup([UNREACHABLE, UNREACHABLE, { error: busy }, ...served], { outage });
    await harness.clock.advance(2400);
    expect(harness.calls).toHaveLength(3);
    outage.end();
    await harness.clock.advance(seconds * 1000 - 1);
    expect(harness.calls).toHaveLength(3);
    await harness.clock.advance(1);
    expect(harness.reflector.isSynced).toBe(true);
    await harness.end();
  });

  it("list at most 20 times a minute each, even if the others recover again and again", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(...OUTCOMES), { minLength: 1, maxLength: 6 }),
        fc.integer({ min: 100, max: 20_000 }),
        async (outcomes, everyMs) => {
          const outage = new Outage();
          const server = faultyServer((call) => outcomes[call % outcomes.length] ?? "error", { outage });
          for (let minute = 0; minute < 4; minute += 1) {
            for (let ms = 0; ms < MINUTE_MS; ms += everyMs) {
              await server.clock.advance(Math.min(everyMs, MINUTE_MS - ms));
              outage.end();
            }
            expect(server.callsPerMinute("list")).toBeLessThanOrEqual(20);
            expect(server.callsPerMinute("head")).toBeLessThanOrEqual(20);
          }
          await server.end();
        },
      ),
      { numRuns: 50 },
    );
  });
});

describe("the last contact of a reflector", () => {
  it("is the time of the request for a paged list when its last page is in the store", async () => {
    const harness = setup([
      { list: listOf(10, [object("a", 1)], "more"), takesMs: 3000 },
      { list: listOf(10, [object("b", 2)]), takesMs: 4000 },
      { watch: new FakeWatch() },
    ]);
    await harness.clock.advance(6999);
    expect(harness.reflector.lastContact).toBe(Number.NEGATIVE_INFINITY);
    await harness.clock.advance(1);
    expect(harness.reflector.lastContact).toBe(0);
    await harness.end();
  });

  it("does not advance while a streamed list is incomplete and the store still has the previous list", async () => {
    const first = new FakeWatch();
    const second = new FakeWatch();
    const harness = setup([{ watch: first }, { watch: second }], { canStream: true });
    await settled();
    for (const event of [added("a", 1), bookmark(2, true)]) first.send(event);
    first.send({ type: "ERROR", object: { code: 410, reason: "Expired" } });
    await harness.clock.advance(800);
    const requestedAt = harness.clock.monotonic();
    expect(harness.calls).toEqual(["watch all", "watch all"]);
    for (const event of [added("a", 1), added("b", 3), bookmark(3, false)]) {
      second.send(event);
      await harness.clock.advance(10_000);
      expect(harness.reflector.lastContact).toBe(0);
    }
    second.send(bookmark(3, true));
    await settled();
    expect(harness.names()).toEqual(["a", "b"]);
    expect(harness.reflector.lastContact).toBe(requestedAt);
    await harness.end();
  });

  it("does not advance during the backlog of an interrupted watch, but advances at the end of the backlog", async () => {
    const first = new FakeWatch();
    const second = new FakeWatch();
    const refused = { error: new KubeApiError("GET", 429, "{}", { retryAfterHeader: "60" }) };
    const harness = setup([
      ...[{ list: listOf(10, []) }, { watch: first }],
      ...[refused, refused, { list: listOf(30, []) }, { watch: second }],
    ]);
    await settled();
    first.fail(new Error("reset"));
    await harness.clock.advance(2 * MINUTE_MS + 1000);
    expect(harness.calls.slice(2)).toEqual(["list head", "list head", "list head", "watch 10"]);
    harness.store.observe(object("ours", 12));
    const backlog = [
      added("a", 11),
      { type: "MODIFIED", object: object("ours", 12) },
      { type: "DELETED", object: object("a", 13) },
      bookmark(29, false),
    ];
    for (const event of backlog) {
      second.send(event);
      await settled();
      expect(harness.reflector.lastContact, JSON.stringify(event)).toBe(0);
    }
    second.send(added("b", 30));
    await settled();
    expect(harness.names()).toEqual(["b", "ours"]);
    expect(harness.reflector.lastContact).toBe(harness.clock.monotonic());
    await harness.end();
  });

  it.each<[string, object]>([
    ["an event", added("a", 11)],
    ["a bookmark", bookmark(10, false)],
    ["the event of its own write", { type: "MODIFIED", object: object("ours", 11) }],
  ])("is the arrival time of %s if the watch is in sync", async (_, event) => {
    const watch = new FakeWatch();
    const harness = setup([{ list: listOf(10, []) }, { watch }]);
    await harness.clock.advance(MINUTE_MS);
    harness.store.observe(object("ours", 11));
    watch.send(event);
    await settled();
    expect(harness.reflector.lastContact).toBe(MINUTE_MS);
    await harness.end();
  });
});

describe("a reflector with streaming lists", () => {
  const canStream = true;
  it("reads every event of the initial list, even the events of its own writes", async () => {
    const watch = new FakeWatch();
    const harness = setup([{ watch }], { canStream });
    await settled();
    watch.send(added("a", 8));
    harness.store.observe(object("a", 9));
    watch.send({ type: "MODIFIED", object: object("a", 9) });
    watch.send(bookmark(9, true));
    await settled();
    expect([...harness.store.values()].map(({ metadata }) => metadata.resourceVersion)).toEqual(["9"]);
    await harness.end();
  });

  it("fills the store when the initial list is complete, and continues with the changes", async () => {
    const watch = new FakeWatch();
    const harness = setup([{ watch }], { canStream });
    await settled();
    for (const event of [added("a", 1), added("b", 2), bookmark(2, false)]) watch.send(event);
    // A change during the initial list.
    watch.send({ type: "DELETED", object: object("b", 3) });
    watch.send({ type: "MODIFIED", object: object("a", 4) });
    await settled();
    expect(harness.reflector.isSynced).toBe(false);
    expect(harness.names()).toEqual([]);
    watch.send(bookmark(4, true));
    await settled();
    expect(harness.reflector.isSynced).toBe(true);
    expect(harness.names()).toEqual(["a"]);
    watch.send(added("c", 5));
    watch.end();
    await harness.clock.advance(1000);
    expect(harness.names()).toEqual(["a", "c"]);
    expect(harness.calls.slice(0, 2)).toEqual(["watch all", "watch 5"]);
    await harness.end();
  });

  it("lists again if the initial list is interrupted, and drops the incomplete list", async () => {
    const first = new FakeWatch();
    const second = new FakeWatch();
    const harness = setup([{ watch: first }, { watch: second }], { canStream });
    await settled();
    first.send(added("a", 1));
    first.fail(new Error("reset"));
    await harness.clock.advance(1000);
    expect(harness.calls).toEqual(["watch all", "watch all"]);
    second.send(added("b", 2));
    second.send(bookmark(2, true));
    await settled();
    expect(harness.names()).toEqual(["b"]);
    await harness.end();
  });

  it("replaces its contents with the initial list, even if the list is older", async () => {
    const first = new FakeWatch();
    const second = new FakeWatch();
    const gone = { code: 410, reason: "Expired" };
    const harness = setup([{ watch: first }, { watch: second }], { canStream });
    await settled();
    for (const event of [added("a", 90), added("b", 50), bookmark(100, true)]) first.send(event);
    first.send({ type: "ERROR", object: gone });
    await harness.clock.advance(1000);
    for (const event of [added("a", 40), bookmark(60, true)]) second.send(event);
    await settled();
    expect(harness.names()).toEqual(["a"]);
    expect(harness.store.get("ns/a")?.metadata.resourceVersion).toBe("40");
    expect(harness.rollbacks, "reported once, before the store shows it").toEqual(["a,b"]);
    await harness.end();
  });

  it("lists again after three minutes without an event of the initial list", async () => {
    const second = new FakeWatch();
    const harness = setup([{ watch: new FakeWatch() }, { watch: second }], { canStream });
    await harness.clock.advance(181_000);
    expect(harness.calls).toEqual(["watch all", "watch all"]);
    await harness.end();
  });
});
