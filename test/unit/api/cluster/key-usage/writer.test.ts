import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { ClusterCache } from "../../../../../src/api/cluster/cluster-cache.ts";
import { KeyUsageWriter } from "../../../../../src/api/cluster/key-usage/writer.ts";
import { toKeyUsageView, toRecordView } from "../../../../../src/api/cluster/views.ts";
import type { KubeRequest } from "../../../../../src/kube/client.ts";
import { KubeUnreachableError } from "../../../../../src/kube/errors.ts";
import type { ConfigMap } from "../../../../../src/kube/objects.ts";
import { ORGANIZATION_LABEL, RESOURCE_LABEL, recordLabels } from "../../../../../src/records/labels.ts";
import { createLogger } from "../../../../../src/telemetry/log.ts";
import { FakeClock, settled } from "../../../../support/fakes/fake-clock.ts";
import { FakeCluster, refusal } from "../../../../support/fakes/fake-cluster.ts";
import { keyRecord, organizationRecord } from "../../../../support/fixtures/records.ts";

const RECORDS = "records";
const ACME = "11111111-1111-4111-8111-111111111111";
const BETA = "22222222-2222-4222-8222-222222222222";
const SECOND = 1000;
const MINUTE = 60 * SECOND;

interface Key {
  readonly organizationId: string;
  readonly id: string;
}

/**
 * Organizations, keys and key-usage records, which can be read, created and patched as in a real
 * cluster. Watches deliver no changes: the test decides which writes of the other process a process observes.
 */
class UsageCluster extends FakeCluster {
  readonly records = new Map<string, ConfigMap>();
  /** The entries of each write, in order. */
  readonly writes: Readonly<Record<string, string | null>>[] = [];
  #version = 1;

  constructor() {
    super();
    this.behavior = (request) => this.response(request);
  }

  addOrganization(id: string): void {
    this.add("configmaps", RECORDS, organizationRecord({ id }));
  }

  addKey(organizationId: string): Key {
    const { id, record } = keyRecord({ organizationId });
    const data = Object.entries(record.stringData).map(([name, text]) => [name, btoa(String(text))]);
    this.add("secrets", RECORDS, { ...record, ...{ data: Object.fromEntries(data) } });
    return { organizationId, id };
  }

  /** Last use of a key in the record. */
  recorded({ organizationId, id }: Key): string | undefined {
    return this.records.get(`key-usage-${organizationId}`)?.data?.[id];
  }

  response({ method = "GET", path, body }: KubeRequest): unknown {
    const sent: ConfigMap = Object(body);
    const name = method === "POST" ? sent.metadata.name : (path.split("/").at(-1) ?? "");
    const record = this.records.get(name);
    if (method === "POST" && record) throw refusal(409, { reason: "AlreadyExists" });
    if (method !== "POST" && !record) throw refusal(404);
    if (method === "GET") return record;
    if (record && sent.metadata.resourceVersion !== record.metadata.resourceVersion) throw refusal(409);
    this.writes.push(sent.data ?? {});
    this.#version += 1;
    const data = Object.entries({ ...record?.data, ...sent.data }).filter(([, value]) => value !== null);
    const identity = { name, namespace: RECORDS, uid: name, resourceVersion: String(this.#version) };
    const metadata = { ...record?.metadata, ...sent.metadata, ...identity };
    const written = { ...record, metadata, data: Object.fromEntries(data) };
    this.records.set(name, written);
    return written;
  }
}

/** The part of an API process that writes key usage. */
class Process {
  readonly lines: Record<string, unknown>[] = [];
  readonly clock: FakeClock;
  readonly caches: ClusterCache;
  /** Random value from 0 to 1, which determines the interval of its rounds. */
  readonly random: number;
  readonly #cluster: UsageCluster;
  readonly #ending = new AbortController();
  readonly #running: Promise<unknown>;

  private constructor(cluster: UsageCluster, random: number, clock: FakeClock) {
    this.#cluster = cluster;
    this.random = random;
    this.clock = clock;
    const log = createLogger("debug", "api", { write: (line) => this.lines.push(JSON.parse(line)) });
    const common = { client: cluster, namespace: RECORDS, clock, log };
    this.caches = new ClusterCache({ ...common, pipeNamespaces: [], maxAgeMs: 300_000 });
    const writer = new KeyUsageWriter({ cache: this.caches, random: () => random, ...common });
    this.#running = Promise.all([this.caches.run(this.#ending.signal), writer.run(this.#ending.signal)]);
  }

  static async start(cluster: UsageCluster, random = 0.5, clock = new FakeClock()): Promise<Process> {
    const started = new Process(cluster, random, clock);
    await clock.advance(0);
    started.see();
    return started;
  }

  /** Delivers all writes so far to the watch. */
  see(): void {
    for (const record of this.#cluster.records.values()) this.caches.observeRecord(toKeyUsageView(record));
  }

  use(key: Key): void {
    this.caches.keyUsageBuffer.note(key, this.clock.now());
  }

  /** Log lines of the writer about writes, without those about watches. */
  logged(): unknown[] {
    return this.lines.filter(({ msg }) => msg === "key usage could not be recorded");
  }

  async stop(): Promise<void> {
    this.#ending.abort();
    await this.#running;
  }
}

let cluster: UsageCluster;

beforeEach(() => {
  cluster = new UsageCluster();
  cluster.addOrganization(ACME);
});

function at(text: string): string {
  return new Date(text).toISOString();
}

describe("a round of key-usage writes", () => {
  it("creates one record per organization, with all used keys", async () => {
    cluster.addOrganization(BETA);
    const [one, two, other] = [cluster.addKey(ACME), cluster.addKey(ACME), cluster.addKey(BETA)];
    const api = await Process.start(cluster);
    await api.clock.advance(5 * SECOND);
    for (const key of [one, two, one, other]) api.use(key);
    expect(cluster.calls).toEqual([]);
    await api.clock.advance(MINUTE);
    const labels = (of: string) => ({
      "pipes.clouddb.dev/resource": "key-usage",
      "pipes.clouddb.dev/organization": of,
    });
    const time = at("2026-01-01T00:00:00Z");
    expect(cluster.calls).toMatchObject([
      {
        method: "POST",
        body: {
          metadata: { name: `key-usage-${ACME}`, labels: labels(ACME) },
          data: { [one.id]: time, [two.id]: time },
        },
      },
      { method: "POST", body: { metadata: { labels: labels(BETA) }, data: { [other.id]: time } } },
    ]);
    expect(api.caches.usedAt(one)).toEqual(new Date(time));
  });

  it("patches only new uses, with the cached resource version", async () => {
    const [one, two] = [cluster.addKey(ACME), cluster.addKey(ACME)];
    const api = await Process.start(cluster);
    api.use(one);
    await api.clock.advance(MINUTE);
    const { uid, resourceVersion } = cluster.records.get(`key-usage-${ACME}`)?.metadata ?? {};
    api.use(two);
    await api.clock.advance(MINUTE);
    expect(cluster.calls.at(-1)).toMatchObject({
      method: "PATCH",
      patchType: "application/merge-patch+json",
      body: { metadata: { uid, resourceVersion }, data: { [two.id]: at("2026-01-01T00:01:00Z") } },
    });
    expect(cluster.writes.at(-1)).not.toHaveProperty(one.id);
  });

  it("adds only labels that the record lacks, and keeps one that names another organization", async () => {
    const key = cluster.addKey(ACME);
    const [kind, other] = [{ [RESOURCE_LABEL]: "key-usage" }, { [ORGANIZATION_LABEL]: BETA }];
    const api = await Process.start(cluster);
    for (const [version, { labels, added }] of [
      { labels: { ...kind, ...other }, added: {} },
      { labels: other, added: kind },
      { labels: {}, added: recordLabels("key-usage", ACME) },
    ].entries()) {
      const metadata = { name: `key-usage-${ACME}`, uid: "u", namespace: RECORDS, labels };
      const resourceVersion = String(100 * (version + 1));
      cluster.records.set(metadata.name, { metadata: { ...metadata, resourceVersion }, data: {} });
      api.see();
      api.use(key);
      await api.clock.advance(MINUTE);
      expect(cluster.calls.at(-1)).toHaveProperty("body.metadata.labels", added);
    }
    expect(cluster.calls).toHaveLength(3);
  });

  it("sends no request if no key was used, or only in a minute that is already recorded", async () => {
    const key = cluster.addKey(ACME);
    const api = await Process.start(cluster);
    api.use(key);
    await api.clock.advance(MINUTE);
    expect(cluster.calls).toHaveLength(1);
    api.clock.jump(-MINUTE);
    api.use(key);
    await api.clock.advance(2 * MINUTE);
    expect(cluster.calls).toHaveLength(1);
  });

  it("writes the latest use even if the clock was set back afterwards", async () => {
    const key = cluster.addKey(ACME);
    const api = await Process.start(cluster);
    await api.clock.advance(5 * SECOND);
    api.use(key);
    api.clock.jump(-MINUTE);
    api.use(key);
    await api.clock.advance(MINUTE);
    expect(cluster.recorded(key)).toBe(at("2026-01-01T00:00:00Z"));
  });

  it("writes nothing for an organization without a record until the record exists", async () => {
    const key = cluster.addKey(BETA);
    const api = await Process.start(cluster);
    api.use(key);
    await api.clock.advance(2 * MINUTE);
    expect(cluster.calls).toEqual([]);
    const { metadata, ...record } = organizationRecord({ id: BETA });
    const identity = { namespace: RECORDS, uid: "u", resourceVersion: "2" };
    api.caches.observeRecord(toRecordView({ ...record, metadata: { ...metadata, ...identity } }, () => true));
    await api.clock.advance(MINUTE);
    expect(cluster.recorded(key)).toBe(at("2026-01-01T00:00:00Z"));
  });

  it("creates no record if the organization is deleted while the first attempt conflicts", async () => {
    const key = cluster.addKey(ACME);
    const { metadata, ...record } = organizationRecord({ id: ACME });
    const identity = { namespace: RECORDS, uid: "u", resourceVersion: "1" };
    const api = await Process.start(cluster);
    cluster.behavior = async (request) => {
      if (request.method === "POST") {
        cluster.send("configmaps", "DELETED", { ...record, metadata: { ...metadata, ...identity } });
        await settled();
        throw refusal(409, { reason: "AlreadyExists" });
      }
      return cluster.response(request);
    };
    api.use(key);
    await api.clock.advance(MINUTE);
    expect(cluster.calls.map(({ method = "GET" }) => method)).toEqual(["POST", "GET"]);
    expect(api.logged()).toEqual([]);
  });

  it("replaces a malformed entry, keeps the others, and logs it once", async () => {
    const [key, idle] = [cluster.addKey(ACME), cluster.addKey(ACME)];
    const data = { [key.id]: "yesterday", [idle.id]: "never" };
    // Newer than all watch events so far.
    const metadata = { name: `key-usage-${ACME}`, uid: "u", resourceVersion: "2", namespace: RECORDS };
    cluster.records.set(metadata.name, { metadata, data });
    const api = await Process.start(cluster);
    api.use(key);
    await api.clock.advance(MINUTE);
    api.use(key);
    await api.clock.advance(MINUTE);
    expect(cluster.recorded(key)).toBe(at("2026-01-01T00:01:00Z"));
    expect(cluster.recorded(idle)).toBe("never");
    const problems = api.lines.flatMap(({ msg, problem }) => (msg === "malformed record" ? [problem] : []));
    const words = "must be a date and time such as 2026-01-31T12:00:00Z";
    const [both, one] = [`${key.id}: ${words}; ${idle.id}: ${words}`, `${idle.id}: ${words}`];
    expect(problems).toEqual([both, one]);
  });

  it("removes the oldest entry without a key from a record that has more than 500", async () => {
    const key = cluster.addKey(ACME);
    const entries = Array.from({ length: 500 }, (_, age) => [`deleted${age}`, at(`${2025 - age}`)]);
    const metadata = { name: `key-usage-${ACME}`, uid: "u", resourceVersion: "2", namespace: RECORDS };
    cluster.records.set(metadata.name, { metadata, data: Object.fromEntries(entries) });
    const api = await Process.start(cluster);
    api.use(key);
    await api.clock.advance(MINUTE);
    expect(cluster.writes).toEqual([{ [key.id]: at("2026-01-01T00:00:00Z"), deleted499: null }]);
  });
});

describe("two processes", () => {
  it("write the use of a key at most once a minute in total, even if both receive it constantly", async () => {
    const key = cluster.addKey(ACME);
    const processes = [await Process.start(cluster, 0.1), await Process.start(cluster, 0.9)];
    for (let seconds = 0; seconds < 600; seconds += 5) {
      for (const api of processes) {
        api.use(key);
        await api.clock.advance(5 * SECOND);
        api.see();
      }
    }
    const written = cluster.writes.map((entries) => entries[key.id]);
    expect(new Set(written).size).toBe(written.length);
    expect(written.length).toBeGreaterThanOrEqual(9);
  });

  it("never overwrite each other: a change based on a stale version is recomputed", async () => {
    const [one, two] = [cluster.addKey(ACME), cluster.addKey(ACME)];
    const [slow, fast] = [await Process.start(cluster), await Process.start(cluster)];
    slow.use(one);
    slow.use(two);
    fast.clock.jump(5 * MINUTE);
    fast.use(one);
    await fast.clock.advance(MINUTE);
    await slow.clock.advance(MINUTE);
    expect(cluster.recorded(one)).toBe(at("2026-01-01T00:05:00Z"));
    expect(cluster.recorded(two)).toBe(at("2026-01-01T00:00:00Z"));
    expect(cluster.calls.map(({ method = "GET" }) => method)).toEqual(["POST", "POST", "GET", "PATCH"]);
  });
});

describe("a failed or slow write", () => {
  it("is logged once, and retried in each round until it succeeds", async () => {
    const key = cluster.addKey(ACME);
    const api = await Process.start(cluster);
    behave(cluster, "refused");
    api.use(key);
    await api.clock.advance(5 * MINUTE);
    expect(cluster.calls.length).toBeGreaterThanOrEqual(5);
    expect(api.logged()).toMatchObject([
      { level: "warn", organization: ACME, organizations: 1, err: { cause: expect.stringContaining("403") } },
    ]);
    behave(cluster, "none");
    await api.clock.advance(MINUTE);
    expect(cluster.recorded(key)).toBe(at("2026-01-01T00:00:00Z"));
    behave(cluster, "refused");
    api.use(key);
    await api.clock.advance(MINUTE);
    expect(api.logged()).toHaveLength(2);
  });

  it("does not delay writes for another organization when it fails", async () => {
    cluster.addOrganization(BETA);
    const [one, other] = [cluster.addKey(ACME), cluster.addKey(BETA)];
    const api = await Process.start(cluster);
    cluster.behavior = (request) => {
      if (JSON.stringify(request.body).includes(ACME)) throw new KubeUnreachableError("POST: no response");
      return cluster.response(request);
    };
    api.use(one);
    api.use(other);
    await api.clock.advance(MINUTE);
    expect(cluster.recorded(other)).toBe(at("2026-01-01T00:00:00Z"));
  });

  it("does not delay writes for other organizations when it takes 5 s", async () => {
    const slow = cluster.addKey(ACME);
    const others = Array.from({ length: 20 }, (_, at) => {
      const organization = BETA.slice(0, -2) + String(10 + at);
      cluster.addOrganization(organization);
      return cluster.addKey(organization);
    });
    const api = await Process.start(cluster, 0);
    cluster.behavior = (request) => {
      if (!JSON.stringify(request.body).includes(ACME)) return cluster.response(request);
      const { promise, resolve } = Promise.withResolvers<unknown>();
      api.clock.after(5 * SECOND, () => resolve(cluster.response(request)));
      return promise;
    };
    // The slow write is first.
    for (const key of [slow, ...others]) api.use(key);
    await api.clock.advance(30 * SECOND);
    const now = at("2026-01-01T00:00:00Z");
    expect(others.map((key) => cluster.recorded(key))).toEqual(others.map(() => now));
    expect(cluster.recorded(slow)).toBeUndefined();
    await api.clock.advance(5 * SECOND);
    expect(cluster.recorded(slow)).toBe(now);
  });

  it("is not retried if only its response was lost", async () => {
    const key = cluster.addKey(ACME);
    const api = await Process.start(cluster);
    behave(cluster, "lost responses");
    api.use(key);
    await api.clock.advance(MINUTE);
    api.see();
    await api.clock.advance(2 * MINUTE);
    expect(cluster.calls).toHaveLength(1);
  });

  it("is not retried for deleted keys", async () => {
    const [key, gone] = [cluster.addKey(ACME), { organizationId: ACME, id: "gone" }];
    const api = await Process.start(cluster);
    behave(cluster, "refused");
    api.use(key);
    api.use(gone);
    await api.clock.advance(MINUTE);
    expect([...(api.caches.keyUsageBuffer.take().get(ACME) ?? new Map()).keys()]).toEqual([key.id]);
  });
});

describe("the shutdown of a process", () => {
  it("writes the uses since the last round", async () => {
    const key = cluster.addKey(ACME);
    const api = await Process.start(cluster);
    api.use(key);
    await api.stop();
    expect(cluster.recorded(key)).toBe(at("2026-01-01T00:00:00Z"));
  });

  it("also writes the uses recorded during a running round", async () => {
    const [key, late] = [cluster.addKey(ACME), cluster.addKey(ACME)];
    const api = await Process.start(cluster);
    const held = Promise.withResolvers<void>();
    cluster.behavior = async (request) => {
      await held.promise;
      return cluster.response(request);
    };
    api.use(key);
    await api.clock.advance(MINUTE);
    api.use(late);
    const stopped = api.stop();
    held.resolve();
    await stopped;
    expect(cluster.recorded(late)).toBe(at("2026-01-01T00:01:00Z"));
  });

  it("waits at most 3 s for a cluster that does not respond, and logs the failure", async () => {
    cluster.addOrganization(BETA);
    const keys = [cluster.addKey(ACME), cluster.addKey(BETA)];
    const api = await Process.start(cluster);
    cluster.behavior = ({ signal }) =>
      new Promise((_resolve, reject) => {
        if (signal?.aborted) reject(signal.reason);
        signal?.addEventListener("abort", () => reject(signal.reason));
      });
    for (const key of keys) api.use(key);
    let hasEnded = false;
    const stopped = api.stop().then(() => {
      hasEnded = true;
    });
    await api.clock.advance(3 * SECOND - 1);
    expect(hasEnded).toBe(false);
    await api.clock.advance(1);
    await settled();
    expect(hasEnded).toBe(true);
    await stopped;
    expect(api.logged()).toMatchObject([{ organizations: 2 }]);
  });
});

type Fault = "none" | "unreachable" | "refused" | "conflict" | "lost responses";

type Step =
  | { readonly what: "use"; readonly process: number; readonly key: number }
  | { readonly what: "see" | "restart" | "crash"; readonly process: number }
  | { readonly what: "pass"; readonly ms: number }
  | { readonly what: "jump"; readonly process: number; readonly ms: number }
  | { readonly what: "fault"; readonly fault: Fault };

const luck = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const process = fc.nat(1);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ what: fc.constant("use"), process, key: fc.nat(2) }) },
  { weight: 4, arbitrary: fc.record({ what: fc.constant("pass"), ms: fc.nat(90 * SECOND) }) },
  { weight: 2, arbitrary: fc.record({ what: fc.constantFrom("see", "restart", "crash"), process }) },
  {
    weight: 2,
    arbitrary: fc.record({
      what: fc.constant("jump"),
      process,
      ms: fc.integer({ min: -600_000, max: 600_000 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      what: fc.constant("fault"),
      fault: fc.constantFrom("none", "unreachable", "refused", "conflict", "lost responses"),
    }),
  },
);

function behave(of: UsageCluster, fault: Fault): void {
  of.behavior = (request) => {
    if (fault === "unreachable") throw new KubeUnreachableError("no response");
    if (fault === "refused") throw refusal(403);
    if (fault === "conflict" && request.method !== undefined) throw refusal(409);
    const response = of.response(request);
    if (fault === "lost responses") throw new KubeUnreachableError("no response");
    return response;
  };
}

interface Use {
  readonly process: number;
  readonly key: Key;
  readonly minute: number;
  /** `open` until a round can write it: until then, a crash or a failed last write may lose it. */
  fate: "open" | "safe" | "lost";
}

/** Two processes, three keys, and the outcome of each use. */
class Story {
  readonly cluster = new UsageCluster();
  readonly keys: readonly Key[];
  readonly uses: Use[] = [];
  readonly #processes: Process[] = [];
  #fault: Fault = "none";

  constructor() {
    this.cluster.addOrganization(ACME);
    this.keys = [0, 1, 2].map(() => this.cluster.addKey(ACME));
  }

  /** @param luck random value of each process */
  async begin(luck: readonly number[]): Promise<this> {
    for (const random of luck) this.#processes.push(await Process.start(this.cluster, random));
    return this;
  }

  async take(step: Step): Promise<void> {
    if (step.what === "fault") {
      this.#fault = step.fault;
      behave(this.cluster, step.fault);
    } else if (step.what === "pass") {
      for (const { clock } of this.#processes) await clock.advance(step.ms);
      if (step.ms >= MINUTE && this.#fault === "none") this.#settle(() => true, "safe");
    } else {
      await this.#takeIn(step, this.#processes[step.process]);
    }
  }

  async #takeIn(step: Extract<Step, { process: number }>, api: Process | undefined): Promise<void> {
    if (!api) throw new Error("no such process");
    switch (step.what) {
      case "use": {
        const key = this.keys[step.key];
        if (!key) throw new Error("no such key");
        api.use(key);
        const minute = Math.floor(api.clock.now() / MINUTE);
        this.uses.push({ process: step.process, key, minute, fate: "open" });
        return;
      }
      case "jump":
        api.clock.jump(step.ms);
        return;
      case "see":
        api.see();
        return;
      default: {
        if (step.what === "crash") api.caches.keyUsageBuffer.take();
        await api.stop();
        const isWritten = step.what === "restart" && this.#fault === "none";
        this.#settle((use) => use.process === step.process, isWritten ? "safe" : "lost");
        this.#processes[step.process] = await Process.start(this.cluster, api.random, api.clock);
      }
    }
  }

  #settle(isMeant: (use: Use) => boolean, fate: "safe" | "lost"): void {
    for (const use of this.uses) if (use.fate === "open" && isMeant(use)) use.fate = fate;
  }

  async end(): Promise<void> {
    await this.take({ what: "fault", fault: "none" });
    await this.take({ what: "pass", ms: MINUTE });
    for (const api of this.#processes) await api.stop();
  }
}

describe("two processes with random faults", () => {
  it("never move an entry back in time, and lose at most the last minute of uses in a crash", async () => {
    await fc.assert(
      fc.asyncProperty(fc.tuple(luck, luck), fc.array(step, { maxLength: 60 }), async (lucks, steps) => {
        const story = await new Story().begin(lucks);
        for (const each of steps) await story.take(each);
        await story.end();

        for (const key of story.keys) {
          const written = story.cluster.writes.flatMap(({ [key.id]: time }) => time ?? []);
          expect(written).toEqual([...new Set(written)].sort());
          const uses = story.uses.filter((use) => use.key === key);
          const minutes = uses.map(({ minute }) => minute);
          const kept = uses.filter(({ fate }) => fate === "safe").map(({ minute }) => minute);
          const recorded = story.cluster.recorded(key);
          const minute = recorded === undefined ? -Infinity : Date.parse(recorded) / MINUTE;
          expect(minute).toBeGreaterThanOrEqual(Math.max(...kept));
          expect(minute).toBeLessThanOrEqual(Math.max(...minutes));
        }
      }),
    );
  });
});
