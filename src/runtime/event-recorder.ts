import type { KubeClient } from "../kube/client.ts";
import { isCode } from "../kube/errors.ts";
import { collectionPath, EVENTS, objectPath } from "../kube/paths.ts";
import type { Clock } from "./clock.ts";
import { TokenBucket } from "./token-bucket.ts";

/** The object that an event is about. */
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
  /** The failed or completed activity, in one word. */
  readonly action: string;
  /** For people. Cut if it and the suffix together are longer than 1,024 bytes, which is the API server's limit. */
  readonly note: string;
  /**
   * End of the note that is kept if the note is cut, such as an identifier; only a suffix above 512 bytes is cut too.
   */
  readonly suffix?: string;
}

export interface EventRecorderOptions {
  readonly client: Pick<KubeClient, "json">;
  readonly clock: Clock;
  /** `reportingController` and `reportingInstance` of the events. */
  readonly controller: string;
  readonly instance: string;
  readonly fieldManager: string;
  /** Throws if this process may no longer write. */
  readonly assertMayWrite: () => void;
  /** Called with each event that was not written; nothing is retried. */
  readonly onLost: (event: Event, problem: unknown) => void;
}

/** In bytes of UTF-8; the API server rejects longer notes. */
const NOTE_LIMIT = 1024;
const ELLIPSIS = "…";
/** An event that recurs within this time of its last occurrence increases the count of the existing Event. */
const SERIES_MS = 6 * 60_000;
/** Different events about one object: 10 in a row, then one a minute. */
const QUOTA = { requests: 10, windowMs: 10 * 60_000 };
/** Maximum number of objects whose recent events are remembered. */
const MAX_REMEMBERED = 1000;
/** Maximum number of concurrent calls. */
const MAX_IN_FLIGHT = 100;

interface Series {
  /** Name of its Event, which may not be written yet. */
  readonly name: Promise<string>;
  count: number;
  lastAt: number;
}

interface Regarded {
  readonly bucket: TokenBucket;
  readonly series: Map<string, Series>;
}

/** The object of an event, and the key of its series. */
interface Place {
  readonly key: string;
  readonly object: Regarded;
}

/**
 * Writes Kubernetes Events for people.
 *
 * Guarantees:
 * - `record` never waits. A bounded number of writes is in flight at a time; events beyond that are dropped and
 *   passed to `onLost`.
 * - If an event about an object recurs within six minutes, only the count of its Event increases, unless the event was
 *   forgotten: about 10 events are remembered for each of 1,000 objects.
 * - One object cannot flood the cluster: it gets 10 different events in a row, then one a minute.
 */
export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #objects = new Map<string, Regarded>();
  #inFlight = 0;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
  }

  record(event: Event): void {
    const { clock, onLost } = this.#options;
    const object = this.#remember(event.regarding.uid);
    const key = `${event.type} ${event.reason} ${event.note}${event.suffix ?? ""}`;
    const series = object.series.get(key);
    const isRepeated = series !== undefined && clock.monotonic() - series.lastAt < SERIES_MS;
    if (this.#inFlight >= MAX_IN_FLIGHT || !(isRepeated || object.bucket.take(clock.monotonic()))) {
      onLost(event, new Error("too many events at once"));
      return;
    }
    this.#inFlight += 1;
    const write = isRepeated
      ? this.#count(event, series, { key, object })
      : this.#begin(event, { key, object });
    write
      .catch((problem: unknown) => onLost(event, problem))
      .finally(() => {
        this.#inFlight -= 1;
      });
  }

  #remember(uid: string): Regarded {
    const known = this.#objects.get(uid);
    if (known) {
      // The least recently used one is first in the map.
      this.#objects.delete(uid);
      this.#objects.set(uid, known);
      return known;
    }
    const [oldest] = this.#objects.keys();
    if (oldest !== undefined && this.#objects.size >= MAX_REMEMBERED) this.#objects.delete(oldest);
    const object = { bucket: new TokenBucket(QUOTA), series: new Map() };
    this.#objects.set(uid, object);
    return object;
  }

  async #begin(event: Event, place: Place): Promise<void> {
    const { key, object } = place;
    if (object.series.size >= QUOTA.requests) object.series.clear();
    const series = { name: this.#create(event), count: 1, lastAt: this.#options.clock.monotonic() };
    object.series.set(key, series);
    try {
      await series.name;
    } catch (error) {
      forget(series, place);
      throw error;
    }
  }

  async #create(event: Event): Promise<string> {
    const { client, clock, controller, instance, fieldManager, assertMayWrite } = this.#options;
    const { regarding, type, reason, action } = event;
    assertMayWrite();
    const created = await client.json<{ readonly metadata: { readonly name: string } }>({
      method: "POST",
      path: collectionPath(EVENTS, regarding.namespace),
      query: { fieldManager },
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
        note: limitedNote(event),
        regarding,
      },
    });
    return created.metadata.name;
  }

  async #count(event: Event, series: Series, place: Place): Promise<void> {
    const { client, clock, fieldManager, assertMayWrite } = this.#options;
    series.count += 1;
    series.lastAt = clock.monotonic();
    const name = await series.name;
    assertMayWrite();
    try {
      await client.json({
        method: "PATCH",
        path: objectPath(EVENTS, event.regarding.namespace, name),
        query: { fieldManager },
        patchType: "application/merge-patch+json",
        body: { series: { count: series.count, lastObservedTime: microTime(clock.now()) } },
      });
    } catch (error) {
      if (!isCode(error, 404)) throw error;
      // A person deleted the Event, or it expired, by default after an hour.
      forget(series, place);
      this.record(event);
    }
  }
}

/** After this, the next event with the key begins a new series. */
function forget(series: Series, { key, object }: Place): void {
  if (object.series.get(key) === series) object.series.delete(key);
}

function limitedNote({ note, suffix = "" }: Event): string {
  const end = cut(suffix, NOTE_LIMIT / 2);
  return `${cut(note, NOTE_LIMIT - Buffer.byteLength(end))}${end}`;
}

/** Returns the text, or if it is too long, its beginning and an ellipsis. Never cuts within a character. */
function cut(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= maxBytes) return text;
  let end = maxBytes - Buffer.byteLength(ELLIPSIS);
  while (isContinuation(bytes[end])) end -= 1;
  return `${bytes.toString("utf8", 0, end)}${ELLIPSIS}`;
}

/** In UTF-8, every byte of a character except the first starts with the bits 10. */
function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

function microTime(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "000Z");
}
