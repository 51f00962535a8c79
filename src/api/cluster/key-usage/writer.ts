import type { KubeClient } from "../../../kube/client.ts";
import { keyUsageConfigMap, keyUsageConfigMapName, keyUsageData } from "../../../records/key-usage.ts";
import { type Clock, pause } from "../../../runtime/clock.ts";
import type { Logger } from "../../../telemetry/log.ts";
import type { ClusterCache } from "../cluster-cache.ts";
import { RecordWriter } from "../record-writer.ts";
import { retryOnConflict } from "../retry-on-conflict.ts";
import { labelsToAdd, toKeyUsageView } from "../views.ts";
import type { UsedMinutes } from "./buffer.ts";
import { keyUsageChange } from "./change.ts";

/** Time between rounds, random so that processes do not keep colliding; the rest of a minute is for writing. */
const MIN_INTERVAL_MS = 30_000;
const INTERVAL_JITTER_MS = 25_000;

/** Time for the last round, part of the budget of a graceful shutdown (setup.ts). */
const LAST_ROUND_MS = 3000;

/** Number of concurrent writes, so that a slow one delays few others. */
const CONCURRENCY = 8;

export interface KeyUsageWriterOptions {
  readonly cache: Pick<ClusterCache, "keyUsageBuffer" | "record" | "keysOf" | "observeRecord">;
  readonly client: Pick<KubeClient, "json">;
  /** Namespace of the records. */
  readonly namespace: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random?: () => number;
}

/** The outcome of one round. */
interface Round {
  readonly writer: RecordWriter;
  readonly failing: Set<string>;
  /** The first failure that the round before did not have. */
  newFailure: { readonly organization: string; readonly err: unknown } | undefined;
}

/**
 * Writes the last use of keys to the cluster, in rounds with pauses of 30 to 55 s. A round makes at most one successful
 * write per organization, and no request waits for it.
 *
 * Guarantees:
 * - However many processes write, an entry changes at most once for each minute, and never to an earlier one. Every
 *   write is bound to the version that it was decided on, and a use that another process has recorded is not written
 *   again.
 * - A round without new uses writes nothing, so an idle API makes no calls.
 * - A use is kept until it is written or its key is gone: while the cluster is reachable, a graceful shutdown loses
 *   nothing, and a killed process loses about a minute at most.
 * - A record that cannot be written does not prevent the writes of others. A round logs at most one line: the first
 *   failure that the round before did not have, and the number of failing records.
 */
export class KeyUsageWriter {
  readonly #options: KeyUsageWriterOptions;
  /** Organizations whose record could not be written in the last round. */
  #failing: ReadonlySet<string> = new Set();

  constructor(options: KeyUsageWriterOptions) {
    this.#options = options;
  }

  /** Runs until the signal is aborted, then makes one more round of at most 3 s. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, client, namespace, random = Math.random } = this.#options;
    const overdue = new AbortController();
    const end = () => overdue.abort(new Error("shutdown timed out"));
    const startLastRound = () => clock.after(LAST_ROUND_MS, end);
    if (signal.aborted) startLastRound();
    else signal.addEventListener("abort", startLastRound, { once: true });
    const writer = new RecordWriter(client, namespace, overdue.signal);
    for (let isLast = false; !isLast; ) {
      await pause(clock, MIN_INTERVAL_MS + Math.floor(random() * INTERVAL_JITTER_MS), signal);
      isLast = signal.aborted;
      await this.#round(writer);
    }
  }

  async #round(writer: RecordWriter): Promise<void> {
    const { cache, log } = this.#options;
    const round: Round = { writer, failing: new Set(), newFailure: undefined };
    const organizations = cache.keyUsageBuffer.take().entries();
    const work = async () => {
      // All workers share the one iterator, so each organization is taken once.
      for (const [organization, uses] of organizations) await this.#record(organization, uses, round);
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, work));
    this.#failing = round.failing;
    if (round.newFailure) {
      log.warn({ ...round.newFailure, organizations: round.failing.size }, "key usage could not be recorded");
    }
  }

  /** Never rejects: uses that could not be written go back to the buffer. */
  async #record(organization: string, uses: UsedMinutes, round: Round): Promise<void> {
    const { cache } = this.#options;
    const keys = new Set(cache.keysOf(organization).map(({ id }) => id));
    try {
      if (await this.#write(organization, uses, keys, round.writer)) return;
    } catch (err) {
      round.failing.add(organization);
      if (!this.#failing.has(organization)) round.newFailure ??= { organization, err };
    }
    cache.keyUsageBuffer.restore(organization, new Map([...uses].filter(([id]) => keys.has(id))));
  }

  /** @returns whether the uses are recorded, which requires that the organization has a record */
  async #write(
    organizationId: string,
    uses: UsedMinutes,
    keys: ReadonlySet<string>,
    writer: RecordWriter,
  ): Promise<boolean> {
    const { cache } = this.#options;
    const hasOrganization = () => cache.record("organization", organizationId) !== undefined;
    const written = await retryOnConflict({
      cached: cache.record("key-usage", organizationId),
      read: async () => {
        const record = await writer.read(keyUsageConfigMapName(organizationId));
        return record && toKeyUsageView(record);
      },
      attempt: async (current) => {
        if (!hasOrganization()) return undefined;
        const change = keyUsageChange(current?.usage ?? new Map(), uses, keys);
        if (!change) return undefined;
        const { used, removed } = change;
        if (!current) return writer.create(keyUsageConfigMap(organizationId, used));
        const data = { ...keyUsageData(used), ...Object.fromEntries(removed.map((id) => [id, null])) };
        return writer.patch(current, { labels: labelsToAdd(current, organizationId), data });
      },
      what: "this record of key usage",
    });
    if (written) cache.observeRecord(toKeyUsageView(written));
    return hasOrganization();
  }
}
