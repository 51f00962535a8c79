import type { KubeClient } from "../kube/client.ts";
import { keyUsageConfigMap, keyUsageConfigMapName, keyUsageData } from "../records/key-usage.ts";
import { recordLabels } from "../records/labels.ts";
import { type Clock, pause } from "../runtime/clock.ts";
import type { Logger } from "../telemetry/log.ts";
import { toCachedKeyUsage } from "./cached-objects.ts";
import type { Caches } from "./caches.ts";
import { keyUsageChange } from "./key-usage-change.ts";
import type { UsedMinutes } from "./key-usage-notes.ts";
import { changeObject } from "./object-change.ts";
import { RecordWriter } from "./record-writer.ts";

/** From one round to the next, at random so that processes do not keep meeting; the rest of a minute is for writing. */
const LEAST_BETWEEN_MS = 30_000;
const BETWEEN_SPREAD_MS = 25_000;

/** What the last answer (process.ts) leaves of a Pod's usual grace, and a little for what else is to be closed. */
const LAST_ROUND_MS = 3000;

export interface KeyUsageWriterOptions {
  readonly caches: Pick<Caches, "usageNotes" | "keyUsage" | "keysOf" | "organization" | "observeRecord">;
  readonly client: Pick<KubeClient, "json">;
  /** Namespace of the records. */
  readonly namespace: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random?: () => number;
}

/**
 * Writes down when keys were last used, behind the requests' back: in rounds, at most a minute apart, and in
 * each at most one patch an organization.
 *
 * Guarantees:
 * - However many processes write: an entry changes at most once in each minute, and never to an earlier one.
 *   Every write is bound to the version that it was decided on, and what another process has already written
 *   is not written again.
 * - A round that finds nothing used writes nothing, so an idle API makes no calls.
 * - A use is kept until it is written, or until its key is gone. So a process that is told to end loses
 *   nothing unless the cluster is gone too, and one that is killed at most a minute.
 * - A record that cannot be written holds up no other, and is told once.
 */
export class KeyUsageWriter {
  readonly #options: KeyUsageWriterOptions;
  /** Organizations whose record could not be written in the last round. */
  #failing: ReadonlySet<string> = new Set();

  constructor(options: KeyUsageWriterOptions) {
    this.#options = options;
  }

  /** Until the signal is aborted, and then one more round, of at most 3 s. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, client, namespace, random = Math.random } = this.#options;
    const overdue = new AbortController();
    const end = () => overdue.abort(new Error("the process has to end"));
    const expectEnd = () => clock.after(LAST_ROUND_MS, end);
    if (signal.aborted) expectEnd();
    else signal.addEventListener("abort", expectEnd, { once: true });
    const writer = new RecordWriter(client, namespace, overdue.signal);
    for (let isLast = false; !isLast; ) {
      await pause(clock, LEAST_BETWEEN_MS + Math.floor(random() * BETWEEN_SPREAD_MS), signal);
      isLast = signal.aborted;
      await this.#round(writer);
    }
  }

  async #round(writer: RecordWriter): Promise<void> {
    const { caches, log } = this.#options;
    const failing = new Set<string>();
    let news: { readonly organization: string; readonly err: unknown } | undefined;
    for (const [organization, uses] of caches.usageNotes.take()) {
      const keys = new Set(caches.keysOf(organization).map(({ id }) => id));
      try {
        if (await this.#write(organization, uses, keys, writer)) continue;
      } catch (err) {
        failing.add(organization);
        if (!this.#failing.has(organization)) news ??= { organization, err };
      }
      caches.usageNotes.putBack(organization, new Map([...uses].filter(([id]) => keys.has(id))));
    }
    this.#failing = failing;
    if (news) {
      const organizations = failing.size;
      log.warn({ ...news, organizations }, "the use of keys could not be written down");
    }
  }

  /** @returns whether the uses are written; not while their organization has no record of its own */
  async #write(
    organizationId: string,
    uses: UsedMinutes,
    keys: ReadonlySet<string>,
    writer: RecordWriter,
  ): Promise<boolean> {
    const { caches } = this.#options;
    if (!caches.organization(organizationId)) return false;
    const labels = recordLabels("key-usage", organizationId);
    const written = await changeObject({
      cached: caches.keyUsage(organizationId),
      read: async () => {
        const record = await writer.read(keyUsageConfigMapName(organizationId));
        return record && toCachedKeyUsage(record);
      },
      attempt: async (current) => {
        const change = keyUsageChange(current?.usage ?? new Map(), uses, keys);
        if (!change) return undefined;
        const { used, removed } = change;
        if (!current) return writer.create(keyUsageConfigMap(organizationId, used));
        const data = { ...keyUsageData(used), ...Object.fromEntries(removed.map((id) => [id, null])) };
        return writer.patch(current, { labels, data });
      },
      what: "this record of the use of keys",
    });
    if (written) caches.observeRecord(toCachedKeyUsage(written));
    return true;
  }
}
