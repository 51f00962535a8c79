import { isDeepStrictEqual } from "node:util";
import type { KubeClient } from "../kube/client.ts";
import { isCode } from "../kube/errors.ts";
import type { Lease } from "../kube/objects.ts";
import { collectionPath, LEASES, objectPath } from "../kube/paths.ts";
import { type Clock, pause } from "./clock.ts";
import { RestartRequiredError } from "./restart-required.ts";

export interface LeaderOptions {
  readonly client: Pick<KubeClient, "json">;
  readonly clock: Clock;
  readonly namespace: string;
  readonly name: string;
  readonly fieldManager: string;
  /** Unique to this process. */
  readonly identity: string;
  /** Time without an observed renewal after which other candidates take over. */
  readonly leaseMs?: number;
  /** Time after the start of its last renewal for which a leader still writes; well below `leaseMs`. */
  readonly renewDeadlineMs?: number;
  readonly retryMs?: number;
  readonly random?: () => number;
  readonly onProblem: (problem: unknown) => void;
}

export class LeadershipLostError extends RestartRequiredError {
  override readonly name = "LeadershipLostError";
}

/** A candidate retries after `retryMs` to 2.2 × `retryMs`, as in client-go, so that candidates spread out. */
const JITTER_FACTOR = 1.2;

/** A Lease is honored for at most this time, even if its holder, such as a thief of the token, wrote a longer one. */
export const MAX_LEASE_MS = 60_000;

/** The maximum of `leaseTransitions`, an int32. A thief of the token could write it. */
export const MAX_LEASE_TRANSITIONS = 2 ** 31 - 1;

/** A Lease as it was last read or written. */
interface Observation {
  readonly lease: Lease;
  /** Monotonic time at which this process first saw the Lease with this spec. */
  readonly at: number;
  /** Monotonic time at which this process first saw that the Lease was deleted. */
  readonly deletedAt?: number;
}

/**
 * Elects at most one leader by a Lease, with the rules of client-go.
 *
 * Guarantees:
 * - Clocks of machines are never compared. A candidate takes over when, by its own monotonic clock, the Lease has not
 *   changed for the duration that its holder wrote into it, at most a minute. Failed calls do not restart this time.
 * - `assertHeld` throws if the last successful renewal started more than `renewDeadlineMs` ago. So a leader whose
 *   process was suspended does not write until it has renewed the Lease, and cannot renew it if another one took it.
 * - On shutdown, a leader releases the Lease, so that the next one does not have to wait.
 */
export class LeaderElector {
  readonly #options: Required<LeaderOptions>;
  #heldUntil = Number.NEGATIVE_INFINITY;
  #observed: Observation | undefined;
  /** After an error, the Lease on the server can differ from the observed one. */
  #mustRead = true;

  constructor(options: LeaderOptions) {
    this.#options = {
      leaseMs: 15_000,
      renewDeadlineMs: 10_000,
      retryMs: 2_000,
      random: Math.random,
      ...options,
    };
  }

  get isLeader(): boolean {
    return this.#options.clock.monotonic() < this.#heldUntil;
  }

  /** Call it right before each write. @throws LeadershipLostError */
  assertHeld(): void {
    if (!this.isLeader) throw new LeadershipLostError("not written: another process may hold the lease");
  }

  /**
   * Waits for the lease, then runs `lead`, whose signal is aborted when the lease is lost or `signal` is aborted.
   *
   * @returns true if the lease was lost, even after an abort; false if `lead` ended before that or never ran
   */
  async run(signal: AbortSignal, lead: (signal: AbortSignal) => Promise<void>): Promise<boolean> {
    const { clock, retryMs, random } = this.#options;
    while (!signal.aborted && !(await this.#tryAcquireOrRenew(signal))) {
      await pause(clock, retryMs * (1 + random() * JITTER_FACTOR), signal);
    }
    if (signal.aborted) {
      await this.#release();
      return false;
    }
    const ending = new AbortController();
    // Renewals continue while `lead` finishes its work after an abort.
    const renewing = this.#renewUntilLost(ending.signal);
    const lost = new AbortController();
    const watched = renewing.then(() => lost.abort());
    try {
      await lead(AbortSignal.any([signal, lost.signal]));
    } finally {
      ending.abort();
      await watched;
    }
    if (!this.isLeader) return true;
    await this.#release();
    return false;
  }

  async #renewUntilLost(signal: AbortSignal): Promise<void> {
    const { clock, retryMs } = this.#options;
    while (!signal.aborted && this.isLeader) {
      await pause(clock, retryMs, signal);
      if (!signal.aborted) await this.#tryAcquireOrRenew(undefined);
    }
  }

  async #tryAcquireOrRenew(signal: AbortSignal | undefined): Promise<boolean> {
    const { clock, identity, renewDeadlineMs, onProblem } = this.#options;
    const startedAt = clock.monotonic();
    try {
      // The holder writes without reading first: one call per renewal.
      const isCurrent = !this.#mustRead && this.#isOurs(this.#observed?.lease);
      const lease = isCurrent ? this.#observed?.lease : await this.#read(signal);
      if (this.#isHeldByAnother()) {
        this.#heldUntil = Number.NEGATIVE_INFINITY;
        return false;
      }
      this.#observe(await this.#write(lease, identity));
      this.#mustRead = false;
      this.#heldUntil = startedAt + renewDeadlineMs;
      return true;
    } catch (error) {
      this.#mustRead = true;
      if (!signal?.aborted && !isCode(error, 409)) onProblem(error);
      return false;
    }
  }

  #isOurs(lease: Lease | undefined): boolean {
    return lease?.spec?.holderIdentity === this.#options.identity;
  }

  /** Returns true if the observed Lease belongs to another process that may still write. */
  #isHeldByAnother(): boolean {
    const { clock, leaseMs, renewDeadlineMs } = this.#options;
    if (!this.#observed) return false;
    const { lease, at, deletedAt = Number.POSITIVE_INFINITY } = this.#observed;
    if (!lease.spec?.holderIdentity || this.#isOurs(lease)) return false;
    const { leaseDurationSeconds } = lease.spec;
    const durationMs = leaseDurationSeconds === undefined ? leaseMs : leaseDurationSeconds * 1000;
    // A holder whose Lease was deleted creates it again, or stops writing within `renewDeadlineMs`.
    return clock.monotonic() < Math.min(at + Math.min(durationMs, MAX_LEASE_MS), deletedAt + renewDeadlineMs);
  }

  async #read(signal: AbortSignal | undefined): Promise<Lease | undefined> {
    const { client, namespace, name } = this.#options;
    try {
      const lease = await client.json<Lease>({ path: objectPath(LEASES, namespace, name), signal });
      this.#observe(lease);
      return lease;
    } catch (error) {
      if (!isCode(error, 404)) throw error;
      if (this.#observed) this.#observed = { deletedAt: this.#options.clock.monotonic(), ...this.#observed };
      return undefined;
    }
  }

  /** Only a changed spec shows that the holder is alive: other clients may edit the metadata. */
  #observe(lease: Lease): void {
    const isUnchanged = this.#observed && isDeepStrictEqual(lease.spec, this.#observed.lease.spec);
    const at = isUnchanged ? this.#observed?.at : undefined;
    this.#observed = { lease, at: at ?? this.#options.clock.monotonic() };
  }

  /** This write cannot be aborted, because releasing the lease requires the version in the response. */
  #write(seen: Lease | undefined, holder: string): Promise<Lease> {
    const { client, clock, namespace, name, leaseMs, fieldManager } = this.#options;
    const now = new Date(clock.now()).toISOString().replace("Z", "000Z");
    // The next acquisition counts as a transition, and a release does not, as in client-go.
    const isAcquisition = holder !== "" && seen?.spec?.holderIdentity !== holder;
    const spec = {
      ...seen?.spec,
      holderIdentity: holder,
      leaseDurationSeconds: Math.ceil(leaseMs / 1000),
      renewTime: now,
      ...(isAcquisition ? { acquireTime: now, leaseTransitions: nextTransition(seen) } : {}),
    };
    const identity = { apiVersion: LEASES.apiVersion, kind: "Lease" };
    return seen
      ? client.json<Lease>({
          method: "PUT",
          path: objectPath(LEASES, namespace, name),
          query: { fieldManager },
          body: { ...identity, metadata: seen.metadata, spec },
        })
      : client.json<Lease>({
          method: "POST",
          path: collectionPath(LEASES, namespace),
          query: { fieldManager },
          body: { ...identity, metadata: { name, namespace }, spec },
        });
  }

  async #release(): Promise<void> {
    this.#heldUntil = Number.NEGATIVE_INFINITY;
    const lease = this.#observed?.lease;
    if (!lease || !this.#isOurs(lease)) return;
    try {
      await this.#write(lease, "");
    } catch (error) {
      if (!isCode(error, 409)) this.#options.onProblem(error);
    }
  }
}

/** Starts over after the maximum: the API server would reject a larger number, so no candidate could take over. */
function nextTransition(seen: Lease | undefined): number {
  const { leaseTransitions = 0 } = seen?.spec ?? {};
  return leaseTransitions < MAX_LEASE_TRANSITIONS ? leaseTransitions + 1 : 1;
}
