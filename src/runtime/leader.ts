import type { KubeClient } from "../kube/client.ts";
import { isCode } from "../kube/errors.ts";
import type { Lease } from "../kube/objects.ts";
import { collectionPath, LEASES, objectPath } from "../kube/paths.ts";
import { type Clock, pause } from "./clock.ts";
import { StartAnewError } from "./start-anew.ts";

export interface LeaderOptions {
  readonly client: Pick<KubeClient, "json">;
  readonly clock: Clock;
  readonly namespace: string;
  readonly name: string;
  /** Unique to this process. */
  readonly identity: string;
  /** How long others wait, without seeing a renewal, before they take over. */
  readonly leaseMs?: number;
  /** How long after its last renewal a leader still writes; well below `leaseMs`. */
  readonly renewDeadlineMs?: number;
  readonly retryMs?: number;
  readonly onProblem: (problem: unknown) => void;
}

export class LeadershipLostError extends StartAnewError {
  override readonly name = "LeadershipLostError";
}

/**
 * At most one leader by a Lease.
 *
 * Guarantees:
 * - Clocks are never compared between machines: a lease is another's until this process has seen it
 *   unchanged for `leaseMs` by its own monotonic clock.
 * - `assertHeld` throws from `renewDeadlineMs` after the *start* of the last successful renewal, so a leader
 *   that was stopped and wakes refuses to write before it has renewed, and cannot renew what another took.
 * - A leader that ends gives the lease back, so that the next one need not wait.
 */
export class LeaderElector {
  readonly #options: Required<LeaderOptions>;
  #heldUntil = Number.NEGATIVE_INFINITY;
  #lease: Lease | undefined;
  #leaseSeenAt = Number.NEGATIVE_INFINITY;

  constructor(options: LeaderOptions) {
    this.#options = { leaseMs: 15_000, renewDeadlineMs: 10_000, retryMs: 2_000, ...options };
  }

  get isLeader(): boolean {
    return this.#options.clock.monotonic() < this.#heldUntil;
  }

  /** To be called right before each write. @throws LeadershipLostError */
  assertHeld(): void {
    if (!this.isLeader)
      throw new LeadershipLostError("the lease may be another's by now: nothing is written");
  }

  /**
   * Waits for the lease, then runs `lead`, whose signal is aborted when the lease is lost or `signal` is.
   *
   * @returns whether the lease was lost; `false` when `signal` or the end of `lead` ended it
   */
  async run(signal: AbortSignal, lead: (signal: AbortSignal) => Promise<void>): Promise<boolean> {
    const { clock, retryMs } = this.#options;
    while (!signal.aborted && !(await this.#tryAcquireOrRenew(signal))) await pause(clock, retryMs, signal);
    if (signal.aborted) return false;
    const ending = new AbortController();
    const renewing = this.#renewUntilLost(AbortSignal.any([signal, ending.signal]));
    const lost = new AbortController();
    const watched = renewing.then(() => lost.abort());
    try {
      await lead(AbortSignal.any([signal, lost.signal]));
    } finally {
      ending.abort();
      await watched;
    }
    const wasLost = !this.isLeader;
    await this.#release();
    return wasLost;
  }

  async #renewUntilLost(signal: AbortSignal): Promise<void> {
    const { clock, retryMs } = this.#options;
    while (!signal.aborted && this.isLeader) {
      await pause(clock, retryMs, signal);
      // Never cut off: a lease whose renewal nobody heard the answer of could not be given back.
      if (!signal.aborted) await this.#tryAcquireOrRenew(undefined);
    }
  }

  async #tryAcquireOrRenew(signal: AbortSignal | undefined): Promise<boolean> {
    const { clock, identity, leaseMs, renewDeadlineMs, onProblem } = this.#options;
    const startedAt = clock.monotonic();
    try {
      // What we hold and saw last is written back without a read: one call a renewal.
      const seen = this.#holds(this.#lease) ? this.#lease : await this.#read(signal);
      const isAnothers = seen?.spec?.holderIdentity && !this.#holds(seen);
      if (isAnothers && clock.monotonic() - this.#leaseSeenAt < leaseMs) return false;
      this.#see(await this.#write(seen, identity, signal));
      this.#heldUntil = startedAt + renewDeadlineMs;
      return true;
    } catch (error) {
      // Another wrote it: look again instead of writing over what is no longer there.
      this.#lease = undefined;
      if (!signal?.aborted && !isCode(error, 409)) onProblem(error);
      return false;
    }
  }

  #holds(lease: Lease | undefined): boolean {
    return lease?.spec?.holderIdentity === this.#options.identity;
  }

  async #read(signal: AbortSignal | undefined): Promise<Lease | undefined> {
    const { client, namespace, name } = this.#options;
    try {
      const lease = await client.json<Lease>({ path: objectPath(LEASES, namespace, name), signal });
      this.#see(lease);
      return lease;
    } catch (error) {
      if (isCode(error, 404)) return undefined;
      throw error;
    }
  }

  #see(lease: Lease): void {
    if (lease.metadata.resourceVersion !== this.#lease?.metadata.resourceVersion) {
      this.#leaseSeenAt = this.#options.clock.monotonic();
    }
    this.#lease = lease;
  }

  #write(seen: Lease | undefined, holder: string, signal: AbortSignal | undefined): Promise<Lease> {
    const { client, clock, namespace, name, leaseMs } = this.#options;
    const now = new Date(clock.now()).toISOString().replace("Z", "000Z");
    const isRenewal = seen?.spec?.holderIdentity === holder;
    const spec = {
      ...seen?.spec,
      holderIdentity: holder,
      leaseDurationSeconds: Math.ceil(leaseMs / 1000),
      renewTime: now,
      ...(isRenewal ? {} : { acquireTime: now, leaseTransitions: (seen?.spec?.leaseTransitions ?? 0) + 1 }),
    };
    const identity = { apiVersion: LEASES.apiVersion, kind: "Lease" };
    return seen
      ? client.json<Lease>({
          method: "PUT",
          path: objectPath(LEASES, namespace, name),
          body: { ...identity, metadata: seen.metadata, spec },
          signal,
        })
      : client.json<Lease>({
          method: "POST",
          path: collectionPath(LEASES, namespace),
          body: { ...identity, metadata: { name, namespace }, spec },
          signal,
        });
  }

  async #release(): Promise<void> {
    const lease = this.#lease;
    this.#heldUntil = Number.NEGATIVE_INFINITY;
    this.#lease = undefined;
    if (!lease || !this.#holds(lease)) return;
    try {
      await this.#write(lease, "", undefined);
    } catch (error) {
      if (!isCode(error, 409)) this.#options.onProblem(error);
    }
  }
}
