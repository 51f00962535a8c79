import { formatSize } from "../../domain/size.ts";
import { elapsedMs } from "../../runtime/elapsed.ts";
import type { Store } from "../../runtime/store.ts";
import { TRUCE_MS } from "../decide/retry.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import type { LastRollout } from "../observe/last-rollout.ts";
import type { WriteError, WritePurpose, WriteRecord } from "../observe/write-record.ts";

/** After this time, the watch has delivered the result of a write. */
const MAX_UNRESOLVED_MS = 5 * 60_000;

/**
 * The last write of this process to each Deployment. It has at most as many entries as the cache has Deployments.
 */
export class WriteHistory {
  readonly #records = new Map<string, WriteRecord>();
  /** Deployments whose rollouts may have started but are not in the cache yet, with the time of the write. */
  readonly #unresolved = new Map<string, number>();

  constructor(pipes: Store<DeploymentView>) {
    pipes.onChange((change) => {
      if (change.type === "deleted") this.#set(change.previous.metadata.uid, undefined);
    });
  }

  /** Keyed by uid of the Deployment. */
  get records(): ReadonlyMap<string, WriteRecord> {
    return this.#records;
  }

  /** Rollouts that may have started but are not in the cache yet. */
  unresolvedRollouts(nowMs: number): number {
    let count = 0;
    for (const atMs of this.#unresolved.values()) if (nowMs - atMs < MAX_UNRESOLVED_MS) count += 1;
    return count;
  }

  /** @returns a function that removes the record, for a write that the API server rejected as outdated */
  begin(uid: string, purpose: WritePurpose, rollout: LastRollout, nowMs: number): () => void {
    const size = formatSize(rollout.size);
    const before = this.#records.get(uid);
    const isSame = before?.purpose === purpose && before.size === size;
    const isRepeated = isSame && elapsedMs(before.lastAtMs, nowMs) <= TRUCE_MS;
    const known = purpose === "resize" ? rollout.attempts : 1;
    const attempts = Math.max(isRepeated ? before.attempts + 1 : 1, known);
    this.#set(uid, { purpose, size, attempts, lastAtMs: nowMs, outcome: { type: "pending" } });
    return () => {
      // The Deployment may have been deleted meanwhile.
      if (this.#records.has(uid)) this.#set(uid, before);
    };
  }

  /** @param stored the Deployment as the API server stored it, which may lack the annotation */
  done(stored: DeploymentView, lastRollout: LastRollout): void {
    const isStripped = stored.lastRollout === undefined;
    // The stored one is equal, and the cache has it already.
    const shared = stored.lastRollout ?? lastRollout;
    this.#settle(stored.metadata.uid, { type: "done", lastRollout: shared, isStripped });
  }

  /** @param generation of the Deployment that the write was for */
  failed(uid: string, error: WriteError, generation: number, nowMs: number): void {
    // The delay before the next attempt starts at the response.
    this.#settle(uid, { type: "failed", error, generation }, nowMs);
  }

  unknown(uid: string, error: WriteError): void {
    this.#settle(uid, { type: "unknown", error });
  }

  /** Call it after a read of the object, which shows whether the write succeeded. */
  resolve(uid: string, generation: number): void {
    const outcome = this.#records.get(uid)?.outcome;
    if (outcome?.type === "unknown") this.#settle(uid, { type: "failed", error: outcome.error, generation });
  }

  #settle(uid: string, outcome: WriteRecord["outcome"], lastAtMs?: number): void {
    const record = this.#records.get(uid);
    // The Deployment may have been deleted meanwhile.
    if (record) this.#set(uid, { ...record, outcome, lastAtMs: lastAtMs ?? record.lastAtMs });
  }

  #set(uid: string, record: WriteRecord | undefined): void {
    if (record) this.#records.set(uid, record);
    else this.#records.delete(uid);
    const isOpen = record?.outcome.type === "pending" || record?.outcome.type === "unknown";
    if (isOpen && record.purpose !== "adopt") this.#unresolved.set(uid, record.lastAtMs);
    else this.#unresolved.delete(uid);
  }
}
