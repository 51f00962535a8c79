import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { KubeRequest } from "../../../src/kube/client.ts";
import { KubeApiError, KubeUnreachableError } from "../../../src/kube/errors.ts";
import type { Lease } from "../../../src/kube/objects.ts";
import {
  LeaderElector,
  type LeaderOptions,
  LeadershipLostError,
  MAX_LEASE_TRANSITIONS,
} from "../../../src/runtime/leader.ts";
import { FakeClock } from "../../support/fakes/fake-clock.ts";

/** The outcome of a call: it succeeds, does not reach the server, loses its response, or gets it after `SLOW_MS`. */
type Fate = "ok" | "not sent" | "response lost" | "slow";
const SLOW_MS = 6000;

/** One Lease behind an API server that checks resource versions and can fail. */
class FakeLeases {
  lease: Lease | undefined;
  isDown = false;
  reads = 0;
  writes = 0;
  fateOf: (method: string) => Fate = () => "ok";
  readonly #clock: FakeClock;
  #version = 0;

  constructor(clock = new FakeClock()) {
    this.#clock = clock;
  }

  async json<T>(request: KubeRequest): Promise<T> {
    const fate = this.isDown ? "not sent" : this.fateOf(request.method ?? "GET");
    if (fate === "not sent") throw new KubeUnreachableError("not sent");
    const response = JSON.parse(JSON.stringify(this.#respond(request)));
    if (fate === "response lost") throw new KubeUnreachableError("response lost");
    if (fate === "slow") await new Promise<void>((resolve) => this.#clock.after(SLOW_MS, resolve));
    return response;
  }

  /** Another writer changes the metadata of the Lease. */
  annotate(): void {
    if (!this.lease) throw new Error("there is no Lease");
    this.#version += 1;
    this.lease = {
      ...this.lease,
      metadata: { ...this.lease.metadata, resourceVersion: String(this.#version) },
    };
  }

  #respond({ method = "GET", body }: KubeRequest): Lease {
    if (method === "GET") {
      this.reads += 1;
      if (!this.lease) throw new KubeApiError("GET", 404, "{}");
      return this.lease;
    }
    const written: Lease = JSON.parse(JSON.stringify(body));
    const isStale = written.metadata.resourceVersion !== this.lease?.metadata.resourceVersion;
    if (isStale) throw new KubeApiError(method, 409, "{}");
    const { leaseTransitions = 0 } = written.spec ?? {};
    if (leaseTransitions > MAX_LEASE_TRANSITIONS) throw new KubeApiError(method, 400, "{}");
    this.#version += 1;
    this.writes += 1;
    this.lease = { ...written, metadata: { ...written.metadata, resourceVersion: String(this.#version) } };
    return this.lease;
  }
}

function candidate(
  leases: FakeLeases,
  clock: FakeClock,
  identity: string,
  { endingMs = 0, ...options }: Partial<LeaderOptions> & { readonly endingMs?: number } = {},
) {
  const abort = new AbortController();
  const elector = new LeaderElector({
    client: leases,
    clock,
    namespace: "ns",
    name: "lease",
    fieldManager: "test",
    identity,
    random: () => 0,
    onProblem: () => undefined,
    ...options,
  });
  const state = { isRunning: false, hasEnded: false };
  const ended = elector.run(abort.signal, async (signal) => {
    state.isRunning = true;
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    if (endingMs > 0) await new Promise<void>((resolve) => clock.after(endingMs, resolve));
    state.isRunning = false;
  });
  ended.then(
    () => {
      state.hasEnded = true;
    },
    () => undefined,
  );
  const stop = () => abort.abort();
  const end = async () => {
    stop();
    await clock.advance(0);
    await ended;
  };
  return { elector, state, ended, stop, end };
}

describe("leader election", () => {
  it("has one leader, which releases the Lease on shutdown", async () => {
    const [leases, clock] = [new FakeLeases(), new FakeClock()];
    const first = candidate(leases, clock, "first");
    await clock.advance(0);
    const second = candidate(leases, clock, "second");
    await clock.advance(60_000);
    expect([first.elector.isLeader, second.elector.isLeader]).toEqual([true, false]);
    first.stop();
    await clock.advance(2000);
    expect(await first.ended).toBe(false);
    expect([first.elector.isLeader, second.elector.isLeader, second.state.isRunning]).toEqual([
      false,
      true,
      true,
    ]);
    second.stop();
    await clock.advance(2000);
    await second.ended;
  });

  it("keeps the Lease after its abort until its work has ended, and then releases it", async () => {
    const [leases, clock] = [new FakeLeases(), new FakeClock()];
    const first = candidate(leases, clock, "first", { endingMs: 25_000 });
    await clock.advance(0);
    const second = candidate(leases, clock, "second");
    first.stop();
    await clock.advance(24_999);
    expect([first.elector.isLeader, second.elector.isLeader]).toEqual([true, false]);
    await clock.advance(2000);
    expect(await first.ended).toBe(false);
    expect([first.elector.isLeader, second.elector.isLeader]).toEqual([false, true]);
    await second.end();
  });

  it("renews the Lease with one write every two seconds and no further reads", async () => {
    const [leases, clock] = [new FakeLeases(), new FakeClock()];
    const only = candidate(leases, clock, "only");
    await clock.advance(20_000);
    expect(leases).toMatchObject({ reads: 1, writes: 11 });
    await only.end();
  });

  it("takes over from a crashed leader only after the Lease has expired by its own monotonic clock", async () => {
    const [leases, clock] = [new FakeLeases(), new FakeClock()];
    const crashed = candidate(leases, new FakeClock(), "crashed");
    await clock.advance(0);
    const next = candidate(leases, clock, "next");
    await clock.advance(14_000);
    expect(next.elector.isLeader).toBe(false);
    clock.jump(10 * 60_000);
    await clock.advance(0);
    expect(next.elector.isLeader).toBe(false);
    await clock.advance(3000);
    expect(next.elector.isLeader).toBe(true);
    await next.end();
    crashed.stop();
  });

  it("takes over after a minute from a holder that wrote a duration of 68 years", async () => {
    const [leases, clock] = [new FakeLeases(), new FakeClock()];
    const thief = candidate(leases, new FakeClock(), "thief", { leaseMs: 2_147_483_647_000 });
    await clock.advance(0);
    const next = candidate(leases, clock, "next");
    await clock.advance(59_000);
    expect(next.elector.isLeader).toBe(false);
    await clock.advance(4000);
    expect(next.elector.isLeader).toBe(true);
    await next.end();
    thief.stop();
  });

  it.each([
    ["crashed", "thief", 20_000],
    ["released the Lease", "", 0],
  ])(
    "takes over from a holder that wrote the largest number of transitions and %s",
    async (_, holder, ms) => {
      const [leases, clock] = [new FakeLeases(), new FakeClock()];
      leases.lease = {
        metadata: { name: "lease", namespace: "ns", uid: "uid", resourceVersion: "seen" },
        spec: { holderIdentity: holder, leaseTransitions: MAX_LEASE_TRANSITIONS },
      };
      const next = candidate(leases, clock, "next");
      await clock.advance(ms);
      expect(leases.lease?.spec).toMatchObject({ holderIdentity: "next", leaseTransitions: 1 });
      await next.end();
      expect(leases.lease?.spec).toMatchObject({ holderIdentity: "", leaseTransitions: 1 });
    },
  );

  it("releases a Lease that it holds with the largest number of transitions", async () => {
    const [leases, clock] = [new FakeLeases(), new FakeClock()];
    leases.lease = {
      metadata: { name: "lease", namespace: "ns", uid: "uid", resourceVersion: "seen" },
      spec: { holderIdentity: "", leaseTransitions: MAX_LEASE_TRANSITIONS - 1 },
    };
    const only = candidate(leases, clock, "only");
    await clock.advance(0);
    expect(leases.lease?.spec).toMatchObject({ leaseTransitions: MAX_LEASE_TRANSITIONS });
    await only.end();
    expect(leases.lease?.spec).toMatchObject({ holderIdentity: "", leaseTransitions: MAX_LEASE_TRANSITIONS });
  });

  it("stops writing before another process can take over if it cannot renew the Lease", async () => {
    const [leases, clock] = [new FakeLeases(), new FakeClock()];
    const only = candidate(leases, clock, "only");
    await clock.advance(4000);
    leases.isDown = true;
    await clock.advance(9999);
    expect(() => only.elector.assertHeld()).not.toThrow();
    await clock.advance(1);
    expect(() => only.elector.assertHeld()).toThrow(LeadershipLostError);
    await clock.advance(2000);
    expect(only.state.isRunning).toBe(false);
    expect(await only.ended).toBe(true);
  });

  it("stops writing ten seconds after the start of its last renewal, even if the response was slow", async () => {
    const clock = new FakeClock();
    const leases = new FakeLeases(clock);
    leases.fateOf = (method) => (method === "PUT" ? "slow" : "ok");
    const only = candidate(leases, clock, "only");
    // The renewal starts after 2 s.
    await clock.advance(11_999);
    expect(() => only.elector.assertHeld()).not.toThrow();
    await clock.advance(1);
    expect(() => only.elector.assertHeld()).toThrow(LeadershipLostError);
    only.stop();
    await clock.advance(2 * SLOW_MS);
    await only.ended;
  });

  it("does not overwrite the Lease of a process that took over while its own process was suspended", async () => {
    const [leases, clock, frozen] = [new FakeLeases(), new FakeClock(), new FakeClock()];
    const sleeper = candidate(leases, frozen, "sleeper");
    await clock.advance(0);
    const next = candidate(leases, clock, "next");
    await clock.advance(20_000);
    expect(leases.lease?.spec?.holderIdentity).toBe("next");
    // The suspended process resumes, and its next renewal is due.
    await frozen.advance(30_000);
    expect(await sleeper.ended).toBe(true);
    expect(leases.lease?.spec?.holderIdentity).toBe("next");
    expect(leases.lease?.spec?.leaseTransitions).toBe(2);
    await next.end();
  });

  it("takes over the Lease of a crashed leader even if one read in six fails", async () => {
    const [leases, clock] = [new FakeLeases(), new FakeClock()];
    const crashed = candidate(leases, new FakeClock(), "crashed");
    await clock.advance(0);
    let reads = 0;
    leases.fateOf = (method) => {
      reads += method === "GET" ? 1 : 0;
      return method === "GET" && reads % 6 === 0 ? "not sent" : "ok";
    };
    const next = candidate(leases, clock, "next");
    await clock.advance(18_000);
    expect(next.elector.isLeader).toBe(true);
    await next.end();
    crashed.stop();
  });

  it("waits for the duration in the Lease of the holder, not for its own duration", async () => {
    const [leases, clock] = [new FakeLeases(), new FakeClock()];
    const crashed = candidate(leases, new FakeClock(), "crashed", { leaseMs: 60_000 });
    await clock.advance(0);
    const next = candidate(leases, clock, "next");
    await clock.advance(59_999);
    expect(next.elector.isLeader).toBe(false);
    await clock.advance(2000);
    expect(next.elector.isLeader).toBe(true);
    await next.end();
    crashed.stop();
  });

  it("does not mistake a metadata change of the Lease for a renewal", async () => {
    const [leases, clock] = [new FakeLeases(), new FakeClock()];
    const crashed = candidate(leases, new FakeClock(), "crashed");
    await clock.advance(0);
    const next = candidate(leases, clock, "next");
    for (let second = 0; second < 17; second += 1) {
      leases.annotate();
      await clock.advance(1000);
    }
    expect(next.elector.isLeader).toBe(true);
    await next.end();
    crashed.stop();
  });

  it("stops writing as soon as it reads that another process holds the Lease", async () => {
    const [leases, clock] = [new FakeLeases(), new FakeClock()];
    const first = candidate(leases, clock, "first");
    await clock.advance(0);
    // An administrator deletes the Lease, and another process creates it.
    leases.lease = undefined;
    const second = candidate(leases, clock, "second");
    await clock.advance(4000);
    expect([first.elector.isLeader, second.elector.isLeader]).toEqual([false, true]);
    expect(await first.ended).toBe(true);
    expect(leases.lease).toMatchObject({ spec: { holderIdentity: "second" } });
    await second.end();
  });

  it("never has two leaders after an administrator deletes the Lease while another process waits for it", async () => {
    const [leases, clock] = [new FakeLeases(), new FakeClock()];
    const first = candidate(leases, clock, "first");
    await clock.advance(0);
    const second = candidate(leases, clock, "second");
    await clock.advance(1000);
    leases.lease = undefined;
    for (let elapsed = 0; elapsed < 30; elapsed += 1) {
      await clock.advance(1000);
      expect([first.elector.isLeader, second.elector.isLeader]).toEqual([true, false]);
    }
    expect(leases.lease).toMatchObject({ spec: { holderIdentity: "first" } });
    await first.end();
    await second.end();
  });

  it("takes over from a crashed leader whose Lease was deleted", async () => {
    const [leases, clock] = [new FakeLeases(), new FakeClock()];
    const crashed = candidate(leases, new FakeClock(), "crashed");
    await clock.advance(0);
    const next = candidate(leases, clock, "next");
    await clock.advance(1000);
    const { spec } = leases.lease ?? {};
    leases.lease = leases.lease && { ...leases.lease, spec: { ...spec, leaseDurationSeconds: 3600 } };
    await clock.advance(5000);
    leases.lease = undefined;
    // A holder that is alive has this time to renew it.
    await clock.advance(9000);
    expect(next.elector.isLeader).toBe(false);
    await clock.advance(7000);
    expect(next.elector.isLeader).toBe(true);
    await next.end();
    crashed.stop();
  });

  it.each(["POST", "PUT"])(
    "releases the Lease if it is ended during the %s that acquires it",
    async (method) => {
      const [leases, clock] = [new FakeLeases(), new FakeClock()];
      if (method === "PUT") {
        const before = candidate(leases, clock, "before");
        await clock.advance(0);
        await before.end();
      }
      const arrived = Promise.withResolvers<void>();
      const slow = {
        json: async <T>(request: KubeRequest): Promise<T> => {
          const response = await leases.json<T>(request);
          if (request.method !== method) return response;
          // The API server has written the Lease, and its response takes a second.
          arrived.resolve();
          await new Promise<void>((resolve) => clock.after(1000, resolve));
          request.signal?.throwIfAborted();
          return response;
        },
      };
      const only = candidate(leases, clock, "only", { client: slow });
      await arrived.promise;
      only.stop();
      await clock.advance(2000);
      expect(await only.ended).toBe(false);
      expect(leases.lease).toMatchObject({ spec: { holderIdentity: "" } });
    },
  );

  it("spreads the retries of a candidate over 2 to 4.4 s", async () => {
    const [leases, clock] = [new FakeLeases(), new FakeClock()];
    const leader = candidate(leases, clock, "leader");
    await clock.advance(0);
    const reads: number[] = [];
    const counted = {
      json: <T>(request: KubeRequest): Promise<T> => {
        reads.push(clock.monotonic());
        return leases.json<T>(request);
      },
    };
    const random = [0, 0.5, 1];
    const next = candidate(leases, clock, "next", { client: counted, random: () => random.shift() ?? 0 });
    await clock.advance(9600);
    expect(reads).toEqual([0, 2000, 5200, 9600]);
    next.stop();
    leader.stop();
    await clock.advance(0);
    await Promise.all([next.ended, leader.ended]);
  });

  it("never has two leaders, and has one within 24 s after any sequence of failed and slow calls", async () => {
    const fate = fc.constantFrom<Fate>("ok", "ok", "not sent", "response lost", "slow");
    const fraction = fc.double({ min: 0, max: 1, noNaN: true });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fate, { maxLength: 60, size: "max" }),
        fc.array(fraction, { minLength: 1, maxLength: 9 }),
        async (fates, fractions) => {
          const clock = new FakeClock();
          const leases = new FakeLeases(clock);
          let draws = 0;
          const random = () => fractions[draws++ % fractions.length] ?? 0;
          leases.fateOf = () => fates.shift() ?? "ok";
          let started = 0;
          const start = () => {
            started += 1;
            return candidate(leases, clock, `process-${started}`, { random });
          };
          const candidates = [start(), start(), start()];
          const leaders = () => candidates.filter(({ elector }) => elector.isLeader).length;
          const advanceUntil = async (isOver: () => boolean, seconds: number) => {
            for (let second = 0; second < seconds && !isOver(); second += 1) {
              await clock.advance(1000);
              expect(leaders()).toBeLessThanOrEqual(1);
              // A process that lost the Lease exits, and its replacement has another name.
              for (const [index, each] of candidates.entries())
                if (each.state.hasEnded) candidates[index] = start();
            }
          };
          await advanceUntil(() => fates.length === 0, 600);
          await advanceUntil(() => false, SLOW_MS / 1000);
          await advanceUntil(() => leaders() === 1, 24);
          expect(leaders()).toBe(1);
          for (const each of candidates) each.stop();
          await clock.advance(0);
          await Promise.all(candidates.map(({ ended }) => ended));
        },
      ),
      { numRuns: 200 },
    );
  });
});
