import { describe, expect, it } from "vitest";
import type { KubeRequest } from "../../src/kube/client.ts";
import { KubeApiError, KubeUnreachableError } from "../../src/kube/errors.ts";
import type { KubeObject } from "../../src/kube/objects.ts";
import { pause } from "../../src/runtime/clock.ts";
import { Reflector } from "../../src/runtime/reflector.ts";
import { Store } from "../../src/runtime/store.ts";
import type { WatchEvent } from "../../src/runtime/watch-stream.ts";
import { settled, VirtualClock } from "../gen/clock.ts";

const MINUTE_MS = 60_000;

interface Step {
  readonly list?: unknown;
  readonly watch?: FakeWatch;
  readonly error?: Error;
  /** Delay of the response to a list. */
  readonly takesMs?: number;
}

/** A watch whose lines the test sends, cut wherever it likes. */
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

/** The response of Kubernetes 1.31, which cannot send a list as events. */
const NO_INITIAL_EVENTS = new KubeApiError(
  "GET",
  422,
  JSON.stringify({ details: { causes: [{ reason: "FieldValueForbidden", field: "sendInitialEvents" }] } }),
);

function setup(script: Step[], { canStream = false } = {}) {
  const clock = new VirtualClock();
  const abort = new AbortController();
  const calls: string[] = [];
  const problems: unknown[] = [];
  const takenBack: string[] = [];
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
      if (raw.metadata.name === "broken") throw new Error("broken");
      return raw;
    },
    clock,
    random: () => 0,
    onProblem: (problem) => problems.push(problem),
    onTakenBack: () => takenBack.push(names().join()),
  });
  const running = reflector.run(abort.signal);
  const end = async () => {
    abort.abort();
    await clock.advance(0);
    await running;
  };
  return { clock, calls, problems, takenBack, store, reflector, names, end };
}

describe("a reflector", () => {
  it("does not read what a write of ours has made, and goes on from there", async () => {
    const first = new FakeWatch();
    const world = setup([{ list: listOf(10, []) }, { watch: first }, { watch: new FakeWatch() }]);
    await settled();
    world.store.observe(object("ours", 11));
    // Would be told as a problem if it were read.
    first.send({ type: "MODIFIED", object: object("broken", 11) });
    first.end();
    await world.clock.advance(1000);
    expect(world.calls.at(-1)).toBe("watch 11");
    expect(world.problems).toEqual([]);
    expect(world.store.isOurs("11")).toBe(false);
    await world.end();
  });

  it("tells what it cannot read, and knows all others", async () => {
    const watch = new FakeWatch();
    const world = setup([{ list: listOf(10, [object("broken", 1), object("b", 2)]) }, { watch }]);
    await settled();
    watch.send({ type: "ADDED", object: object("broken", 11) });
    watch.send({ type: "ADDED", object: object("c", 12) });
    await settled();
    expect(world.names()).toEqual(["b", "c"]);
    expect(world.problems.map(String)).toEqual(
      Array(2).fill("Error: /api/v1/things: ns/broken cannot be read"),
    );
    await world.end();
  });

  it("lists page by page, then watches from there", async () => {
    const watch = new FakeWatch();
    const world = setup([
      { list: listOf(10, [object("a", 1)], "more") },
      { list: listOf(10, [object("b", 2)]) },
      { watch },
    ]);
    await world.reflector.synced;
    await settled();
    watch.send({ type: "ADDED", object: object("c", 11) });
    watch.send({ type: "DELETED", object: object("a", 12) });
    await settled();
    expect(world.calls).toEqual(["list", "list more", "watch 10"]);
    expect(world.names()).toEqual(["b", "c"]);
    await world.end();
  });

  it("joins lines that the network has cut, and splits what it has joined", async () => {
    const watch = new FakeWatch();
    const world = setup([{ list: listOf(1, []) }, { watch }]);
    await settled();
    const lines = [object("ä", 2), object("b", 3)].map((each) =>
      JSON.stringify({ type: "ADDED", object: each }),
    );
    const bytes = Buffer.from(`${lines.join("\n")}\n`);
    for (const byte of bytes) watch.sendBytes(Buffer.from([byte]));
    await settled();
    expect(world.names()).toEqual(["b", "ä"]);
    await world.end();
  });

  it("goes on from the last version, bookmarks included, when the server ends the watch", async () => {
    const first = new FakeWatch();
    const world = setup([{ list: listOf(10, []) }, { watch: first }, { watch: new FakeWatch() }]);
    await settled();
    first.send({ type: "ADDED", object: object("a", 11) });
    first.send({ type: "BOOKMARK", object: { metadata: { resourceVersion: "40" } } });
    first.end();
    await settled();
    expect(world.calls).toEqual(["list", "watch 10", "watch 40"]);
    expect(world.problems).toEqual([]);
    await world.end();
  });

  it("does not ask in a hot loop when the server ends each watch at once", async () => {
    const watches = Array.from({ length: 20 }, () => {
      const watch = new FakeWatch();
      watch.end();
      return { watch };
    });
    const world = setup([{ list: listOf(10, []) }, ...watches]);
    await world.clock.advance(1000);
    expect(world.calls.length).toBeLessThan(6);
    await world.end();
  });

  it("lists again when its position is too old, and deletes what was deleted in the gap", async () => {
    const first = new FakeWatch();
    const world = setup([
      { list: listOf(10, [object("a", 1), object("b", 2)]) },
      { watch: first },
      { list: listOf(99, [object("b", 2)]) },
      { watch: new FakeWatch() },
    ]);
    await settled();
    first.send({ type: "ERROR", object: { code: 410, reason: "Expired" } });
    await world.clock.advance(1000);
    expect(world.calls).toEqual(["list", "watch 10", "list", "watch 99"]);
    expect(world.names()).toEqual(["b"]);
    expect(world.takenBack).toEqual([]);
    await world.end();
  });

  it("survives every error with growing pauses, and says so", async () => {
    const world = setup([
      { error: new KubeUnreachableError("down") },
      { error: new KubeApiError("GET", 500, "{}") },
      { list: listOf(10, [object("a", 1)]) },
      { watch: new FakeWatch() },
    ]);
    await world.clock.advance(200);
    expect(world.reflector.isSynced).toBe(false);
    await world.clock.advance(400);
    expect(world.reflector.isSynced).toBe(true);
    expect(world.problems).toHaveLength(2);
    await world.end();
  });

  it("takes a watch that told of something before it broke for no failure in a row", async () => {
    const watches = Array.from({ length: 6 }, () => new FakeWatch());
    const world = setup([
      { list: listOf(10, []) },
      ...watches.flatMap((watch) => [{ watch }, { list: listOf(99, []) }]),
    ]);
    for (const [index, watch] of watches.entries()) {
      await settled();
      watch.send({ type: "ADDED", object: object("a", 11 + index) });
      watch.fail(new Error("reset"));
      await world.clock.advance(200);
    }
    expect(world.calls.filter((call) => call.startsWith("watch"))).toHaveLength(watches.length + 1);
    await world.end();
  });

  it("obeys a server that asks for patience", async () => {
    const world = setup([
      { error: new KubeApiError("GET", 429, "{}", "7") },
      { list: listOf(1, []) },
      { watch: new FakeWatch() },
    ]);
    await world.clock.advance(6999);
    expect(world.calls).toHaveLength(1);
    await world.clock.advance(1);
    expect(world.reflector.isSynced).toBe(true);
    await world.end();
  });

  it("after an error, goes on where it was if the server's history has not gone back", async () => {
    const first = new FakeWatch();
    const world = setup([
      { list: listOf(10, []) },
      { watch: first },
      { list: listOf(30, []) },
      { watch: new FakeWatch() },
    ]);
    await settled();
    first.fail(new Error("reset"));
    await world.clock.advance(1000);
    expect(world.calls).toEqual(["list", "watch 10", "list head", "watch 10"]);
    await world.end();
  });

  it.each([
    ["nobody was there", new KubeUnreachableError("refused")],
    ["nobody was behind the balancer", new KubeApiError("GET", 503, "{}")],
  ])("lists again after %s: etcd put back may be past its position by then", async (_, error) => {
    const first = new FakeWatch();
    const world = setup([
      { list: listOf(100, [object("a", 90), object("b", 50)]) },
      { watch: first },
      { error },
      { list: listOf(110, [object("a", 40)]) },
      { watch: new FakeWatch() },
    ]);
    await settled();
    first.fail(new Error("reset"));
    await world.clock.advance(1000);
    expect(world.calls.slice(2)).toEqual(["list head", "list", "watch 110"]);
    expect(world.store.get("ns/a")?.metadata.resourceVersion).toBe("40");
    expect(world.names()).toEqual(["a"]);
    await world.end();
  });

  it("takes a history that has gone back as a new truth", async () => {
    const first = new FakeWatch();
    const world = setup([
      { list: listOf(100, [object("a", 90), object("b", 50)]) },
      { watch: first },
      { list: listOf(60, []) },
      { list: listOf(60, [object("a", 40)]) },
      { watch: new FakeWatch() },
    ]);
    await settled();
    first.fail(new Error("reset"));
    await world.clock.advance(1000);
    expect(world.calls.slice(2)).toEqual(["list head", "list", "watch 60"]);
    expect(world.store.get("ns/a")?.metadata.resourceVersion).toBe("40");
    expect(world.names()).toEqual(["a"]);
    expect(world.takenBack, "told once, before the store shows it").toEqual(["a,b"]);
    await world.end();
  });

  it("does not trust silence: without a bookmark for three minutes it looks again", async () => {
    const world = setup([
      { list: listOf(100, [object("a", 90)]) },
      { watch: new FakeWatch() },
      { list: listOf(60, []) },
      { list: listOf(60, []) },
      { watch: new FakeWatch() },
    ]);
    await world.clock.advance(179_999);
    expect(world.calls).toHaveLength(2);
    await world.clock.advance(1000);
    expect(world.calls.slice(2)).toEqual(["list head", "list", "watch 60"]);
    expect(world.names()).toEqual([]);
    await world.end();
  });
});

describe("the last contact of a reflector", () => {
  it("is the time at which a paged list was requested, once its last page is in the store", async () => {
    const world = setup([
      { list: listOf(10, [object("a", 1)], "more"), takesMs: 3000 },
      { list: listOf(10, [object("b", 2)]), takesMs: 4000 },
      { watch: new FakeWatch() },
    ]);
    await world.clock.advance(6999);
    expect(world.reflector.lastContact).toBe(Number.NEGATIVE_INFINITY);
    await world.clock.advance(1);
    expect(world.reflector.lastContact).toBe(0);
    await world.end();
  });

  it("does not advance while a streamed list is incomplete and the store still shows the list before it", async () => {
    const first = new FakeWatch();
    const second = new FakeWatch();
    const world = setup([{ watch: first }, { watch: second }], { canStream: true });
    await settled();
    for (const event of [added("a", 1), bookmark(2, true)]) first.send(event);
    first.send({ type: "ERROR", object: { code: 410, reason: "Expired" } });
    await world.clock.advance(200);
    const requestedAt = world.clock.monotonic();
    expect(world.calls).toEqual(["watch all", "watch all"]);
    for (const event of [added("a", 1), added("b", 3), bookmark(3, false)]) {
      second.send(event);
      await world.clock.advance(10_000);
      expect(world.reflector.lastContact).toBe(0);
    }
    second.send(bookmark(3, true));
    await settled();
    expect(world.names()).toEqual(["a", "b"]);
    expect(world.reflector.lastContact).toBe(requestedAt);
    await world.end();
  });

  it("does not advance during the backlog of an interrupted watch, and advances with its end", async () => {
    const first = new FakeWatch();
    const second = new FakeWatch();
    const refused = { error: new KubeApiError("GET", 429, "{}", "300") };
    const world = setup([
      ...[{ list: listOf(10, []) }, { watch: first }],
      ...[refused, refused, { list: listOf(30, []) }, { watch: second }],
    ]);
    await settled();
    first.fail(new Error("reset"));
    await world.clock.advance(10 * MINUTE_MS + 1000);
    expect(world.calls.slice(2)).toEqual(["list head", "list head", "list head", "watch 10"]);
    world.store.observe(object("ours", 12));
    const backlog = [
      added("a", 11),
      { type: "MODIFIED", object: object("ours", 12) },
      { type: "DELETED", object: object("a", 13) },
      bookmark(29, false),
    ];
    for (const event of backlog) {
      second.send(event);
      await settled();
      expect(world.reflector.lastContact, JSON.stringify(event)).toBe(0);
    }
    second.send(added("b", 30));
    await settled();
    expect(world.names()).toEqual(["b", "ours"]);
    expect(world.reflector.lastContact).toBe(world.clock.monotonic());
    await world.end();
  });

  it.each<[string, object]>([
    ["an event", added("a", 11)],
    ["a bookmark", bookmark(10, false)],
    ["the event of our own write", { type: "MODIFIED", object: object("ours", 11) }],
  ])("is the time of arrival of %s of a watch that is in sync", async (_, event) => {
    const watch = new FakeWatch();
    const world = setup([{ list: listOf(10, []) }, { watch }]);
    await world.clock.advance(MINUTE_MS);
    world.store.observe(object("ours", 11));
    watch.send(event);
    await settled();
    expect(world.reflector.lastContact).toBe(MINUTE_MS);
    await world.end();
  });
});

describe("a reflector whose server sends lists as events", () => {
  const canStream = true;
  it("reads all that comes while a list is in flight, also what a write of ours has made", async () => {
    const watch = new FakeWatch();
    const world = setup([{ watch }], { canStream });
    await settled();
    watch.send(added("a", 8));
    world.store.observe(object("a", 9));
    watch.send({ type: "MODIFIED", object: object("a", 9) });
    watch.send(bookmark(9, true));
    await settled();
    expect([...world.store.values()].map(({ metadata }) => metadata.resourceVersion)).toEqual(["9"]);
    await world.end();
  });

  it("fills the store when all have come, and goes on with what changes", async () => {
    const watch = new FakeWatch();
    const world = setup([{ watch }], { canStream });
    await settled();
    for (const event of [added("a", 1), added("b", 2), bookmark(2, false)]) watch.send(event);
    // It happened while they were being told.
    watch.send({ type: "DELETED", object: object("b", 3) });
    watch.send({ type: "MODIFIED", object: object("a", 4) });
    await settled();
    expect(world.reflector.isSynced).toBe(false);
    expect(world.names()).toEqual([]);
    watch.send(bookmark(4, true));
    await settled();
    expect(world.reflector.isSynced).toBe(true);
    expect(world.names()).toEqual(["a"]);
    watch.send(added("c", 5));
    watch.end();
    await world.clock.advance(1000);
    expect(world.names()).toEqual(["a", "c"]);
    expect(world.calls.slice(0, 2)).toEqual(["watch all", "watch 5"]);
    await world.end();
  });

  it("begins anew when it breaks before all have come, and forgets the half", async () => {
    const first = new FakeWatch();
    const second = new FakeWatch();
    const world = setup([{ watch: first }, { watch: second }], { canStream });
    await settled();
    first.send(added("a", 1));
    first.fail(new Error("reset"));
    await world.clock.advance(1000);
    expect(world.calls).toEqual(["watch all", "watch all"]);
    second.send(added("b", 2));
    second.send(bookmark(2, true));
    await settled();
    expect(world.names()).toEqual(["b"]);
    await world.end();
  });

  it("takes them as the truth, also where it is older than what was known", async () => {
    const first = new FakeWatch();
    const second = new FakeWatch();
    const gone = { code: 410, reason: "Expired" };
    const world = setup([{ watch: first }, { watch: second }], { canStream });
    await settled();
    for (const event of [added("a", 90), added("b", 50), bookmark(100, true)]) first.send(event);
    first.send({ type: "ERROR", object: gone });
    await world.clock.advance(1000);
    for (const event of [added("a", 40), bookmark(60, true)]) second.send(event);
    await settled();
    expect(world.names()).toEqual(["a"]);
    expect(world.store.get("ns/a")?.metadata.resourceVersion).toBe("40");
    expect(world.takenBack, "told once, before the store shows it").toEqual(["a,b"]);
    await world.end();
  });

  it("does not wait for ever for their end", async () => {
    const second = new FakeWatch();
    const world = setup([{ watch: new FakeWatch() }, { watch: second }], { canStream });
    await world.clock.advance(181_000);
    expect(world.calls).toEqual(["watch all", "watch all"]);
    await world.end();
  });
});
