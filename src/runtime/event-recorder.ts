import type { KubeClient } from "../kube/client.ts";
import { isCode } from "../kube/errors.ts";
import { collectionPath, EVENTS, objectPath } from "../kube/paths.ts";
import type { Clock } from "./clock.ts";

/** What an event is about. */
export interface Regarding {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

export interface Event {
  readonly regarding: Regarding;
  readonly type: "Normal" | "Warning";
  /** One word in CamelCase, for programs. */
  readonly reason: string;
  /** What was being done, in one word. */
  readonly action: string;
  /** For people, at most 1 kB (the API server's limit). */
  readonly note: string;
}

export interface EventRecorderOptions {
  readonly client: Pick<KubeClient, "json">;
  readonly clock: Clock;
  /** `reportingController` and `reportingInstance` of the events. */
  readonly controller: string;
  readonly instance: string;
  /** Throws when this process may no longer write. */
  readonly assertMayWrite: () => void;
  /** Told of each event that could not be written; nothing is retried. */
  readonly onLost: (event: Event, problem: unknown) => void;
}

const NOTE_LIMIT = 1024;
/** The same event within this time is counted on the first one instead of written anew. */
const SERIES_MS = 6 * 60_000;
/** Of one object at most so many in a row, and then one each so often. */
const BURST = 10;
const REFILL_MS = 60_000;
/** Objects, and events under way, that are remembered. */
const MOST_REMEMBERED = 1000;
const MOST_UNDER_WAY = 100;

interface Series {
  readonly name: string;
  count: number;
  lastAt: number;
}

interface Regarded {
  tokens: number;
  refilledAt: number;
  readonly series: Map<string, Series>;
}

/**
 * Writes Kubernetes Events for people.
 *
 * Guarantees:
 * - It never holds up who records: writes happen behind its back, a bounded number at a time; what is beyond
 *   the bound is lost, and told to `onLost`.
 * - The same event about the same object within six minutes is one Event with a count.
 * - One object cannot flood: 10 different events in a row, then one a minute.
 */
export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #objects = new Map<string, Regarded>();
  #underWay = 0;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
  }

  record(event: Event): void {
    const { clock, onLost } = this.#options;
    const object = this.#remember(event.regarding.uid, clock.monotonic());
    const key = `${event.type} ${event.reason} ${event.note}`;
    const series = object.series.get(key);
    const isRepeated = series !== undefined && clock.monotonic() - series.lastAt < SERIES_MS;
    if (this.#underWay >= MOST_UNDER_WAY || !(isRepeated || takeToken(object, clock.monotonic()))) {
      onLost(event, new Error("too many events at once"));
      return;
    }
    this.#underWay += 1;
    const write = isRepeated ? this.#count(event, series) : this.#create(event, key, object);
    write
      .catch((problem: unknown) => onLost(event, problem))
      .finally(() => {
        this.#underWay -= 1;
      });
  }

  #remember(uid: string, now: number): Regarded {
    const known = this.#objects.get(uid);
    if (known) {
      // Last used, last forgotten.
      this.#objects.delete(uid);
      this.#objects.set(uid, known);
      return known;
    }
    const [oldest] = this.#objects.keys();
    if (oldest !== undefined && this.#objects.size >= MOST_REMEMBERED) this.#objects.delete(oldest);
    const object = { tokens: BURST, refilledAt: now, series: new Map() };
    this.#objects.set(uid, object);
    return object;
  }

  async #create(event: Event, key: string, object: Regarded): Promise<void> {
    const { client, clock, controller, instance, assertMayWrite } = this.#options;
    const { regarding, type, reason, action, note } = event;
    assertMayWrite();
    const created = await client.json<{ readonly metadata: { readonly name: string } }>({
      method: "POST",
      path: collectionPath(EVENTS, regarding.namespace),
      body: {
        apiVersion: EVENTS.apiVersion,
        kind: "Event",
        metadata: { generateName: `${regarding.name}-`, namespace: regarding.namespace },
        eventTime: microTime(clock.now()),
        reportingController: controller,
        reportingInstance: instance,
        action,
        reason,
        type,
        note: note.slice(0, NOTE_LIMIT),
        regarding,
      },
    });
    if (object.series.size >= BURST) object.series.clear();
    object.series.set(key, { name: created.metadata.name, count: 1, lastAt: clock.monotonic() });
  }

  async #count({ regarding }: Event, series: Series): Promise<void> {
    const { client, clock, assertMayWrite } = this.#options;
    series.count += 1;
    series.lastAt = clock.monotonic();
    assertMayWrite();
    try {
      await client.json({
        method: "PATCH",
        path: objectPath(EVENTS, regarding.namespace, series.name),
        patchType: "application/merge-patch+json",
        body: { series: { count: series.count, lastObservedTime: microTime(clock.now()) } },
      });
    } catch (error) {
      // Events end by themselves after an hour.
      if (!isCode(error, 404)) throw error;
    }
  }
}

function takeToken(object: Regarded, now: number): boolean {
  const refill = Math.floor((now - object.refilledAt) / REFILL_MS);
  if (refill > 0) {
    object.tokens = Math.min(BURST, object.tokens + refill);
    object.refilledAt += refill * REFILL_MS;
  }
  if (object.tokens === 0) return false;
  object.tokens -= 1;
  return true;
}

function microTime(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "000Z");
}
