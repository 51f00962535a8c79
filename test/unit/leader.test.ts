import { describe, expect, it } from "vitest";
import type { KubeRequest } from "../../src/kube/client.ts";
import { KubeApiError, KubeUnreachableError } from "../../src/kube/errors.ts";
import type { Lease } from "../../src/kube/objects.ts";
import { LeaderElector, LeadershipLostError } from "../../src/runtime/leader.ts";
import { VirtualClock } from "../gen/clock.ts";

/** One Lease behind an API server that checks resource versions and can be cut off. */
class FakeLeases {
  lease: Lease | undefined;
  isDown = false;
  writes = 0;
  #version = 0;

  async json<T>(request: KubeRequest): Promise<T> {
    if (this.isDown) throw new KubeUnreachableError("down");
    return JSON.parse(JSON.stringify(this.#answer(request)));
  }

  #answer({ method = "GET", body }: KubeRequest): Lease {
    if (method === "GET") {
      if (!this.lease) throw new KubeApiError("GET", 404, "{}");
      return this.lease;
    }
    const written: Lease = JSON.parse(JSON.stringify(body));
    const isStale = written.metadata.resourceVersion !== this.lease?.metadata.resourceVersion;
    if (isStale) throw new KubeApiError(method, 409, "{}");
    this.#version += 1;
    this.writes += 1;
    this.lease = { ...written, metadata: { ...written.metadata, resourceVersion: String(this.#version) } };
    return this.lease;
  }
}

function candidate(leases: FakeLeases, clock: VirtualClock, identity: string) {
  const abort = new AbortController();
  const elector = new LeaderElector({
    client: leases,
    clock,
    namespace: "ns",
    name: "lease",
    identity,
    onProblem: () => undefined,
  });
  const state = { isRunning: false };
  const ended = elector.run(abort.signal, async (signal) => {
    state.isRunning = true;
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    state.isRunning = false;
  });
  return { elector, state, ended, stop: () => abort.abort() };
}

describe("leader election", () => {
  it("has one leader, which gives the lease back when it ends", async () => {
    const [leases, clock] = [new FakeLeases(), new VirtualClock()];
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

  it("renews with one write each two seconds and no read", async () => {
    const [leases, clock] = [new FakeLeases(), new VirtualClock()];
    const only = candidate(leases, clock, "only");
    await clock.advance(20_000);
    expect(leases.writes).toBe(11);
    only.stop();
    await clock.advance(0);
    await only.ended;
  });

  it("takes over from one that vanished only after the lease is over by its own clock", async () => {
    const [leases, clock] = [new FakeLeases(), new VirtualClock()];
    const gone = candidate(leases, new VirtualClock(), "gone");
    await clock.advance(0);
    const next = candidate(leases, clock, "next");
    await clock.advance(14_000);
    expect(next.elector.isLeader).toBe(false);
    clock.jump(10 * 60_000);
    await clock.advance(0);
    expect(next.elector.isLeader).toBe(false);
    await clock.advance(3000);
    expect(next.elector.isLeader).toBe(true);
    next.stop();
    gone.stop();
    await clock.advance(0);
    await next.ended;
  });

  it("stops writing before the lease can be another's, when it cannot renew", async () => {
    const [leases, clock] = [new FakeLeases(), new VirtualClock()];
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

  it("does not write over the lease of the one that took over while it was stopped", async () => {
    const [leases, clock, frozen] = [new FakeLeases(), new VirtualClock(), new VirtualClock()];
    const sleeper = candidate(leases, frozen, "sleeper");
    await clock.advance(0);
    const next = candidate(leases, clock, "next");
    await clock.advance(20_000);
    expect(leases.lease?.spec?.holderIdentity).toBe("next");
    // It wakes, and finds its next renewal due.
    await frozen.advance(30_000);
    expect(await sleeper.ended).toBe(true);
    expect(leases.lease?.spec?.holderIdentity).toBe("next");
    expect(leases.lease?.spec?.leaseTransitions).toBe(2);
    next.stop();
    await clock.advance(0);
    await next.ended;
  });
});
