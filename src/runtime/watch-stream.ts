import type { Stream } from "../kube/client.ts";
import { KubeApiError } from "../kube/errors.ts";
import type { KubeObject } from "../kube/objects.ts";
import { decode, decodeWatchEvent, objectVersion, status } from "../kube/protobuf/envelope.ts";
import type { Message } from "../kube/protobuf/message.ts";
import { splitFrames, splitLines } from "./split.ts";

const QUOTE = 0x22;

/** One event of a watch. */
export interface WatchEvent<Raw extends KubeObject> {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK";
  readonly object: Raw;
}

interface ErrorEvent {
  readonly type: "ERROR";
  readonly object: { readonly code?: number };
}

/** The event of a change that the store already has. Its object is not parsed. */
export interface KnownEvent {
  readonly type: "KNOWN";
  readonly resourceVersion: string;
}

export interface WatchOptions<Raw> {
  /** The watched path, for errors. */
  readonly path: string;
  /** The message of the objects; absent if they come as JSON. */
  readonly message?: Message<Raw> | undefined;
  /** Returns true if the store already has the change with this version, so that its event can be skipped. */
  readonly isKnown: (resourceVersion: string) => boolean;
}

/** An event that is not parsed yet. */
interface UnreadEvent<Raw extends KubeObject> {
  /** The new resource version of a MODIFIED object; `undefined` for other events, or if it is not cheap to read. */
  readonly changedTo: string | undefined;
  read(): WatchEvent<Raw> | ErrorEvent;
}

/** The format of a watch: splits a body into events, and reads them. */
interface Format<Raw extends KubeObject> {
  readonly split: (chunk: Buffer) => Buffer[];
  readonly open: (part: Buffer) => UnreadEvent<Raw>;
}

/**
 * The events of a watch.
 *
 * @throws KubeApiError for an event of type ERROR
 */
export async function* watchEvents<Raw extends KubeObject>(
  body: Stream,
  { path, isKnown, message }: WatchOptions<Raw>,
): AsyncGenerator<WatchEvent<Raw> | KnownEvent> {
  const format = body.isProtobuf && message ? inProtobuf(message) : inJson<Raw>();
  for await (const chunk of body) {
    for (const part of format.split(chunk)) {
      const event = format.open(part);
      const { changedTo } = event;
      if (changedTo !== undefined && isKnown(changedTo)) yield { type: "KNOWN", resourceVersion: changedTo };
      else yield checked(event.read(), path);
    }
  }
}

function checked<Raw extends KubeObject>(event: WatchEvent<Raw> | ErrorEvent, path: string): WatchEvent<Raw> {
  if (event.type !== "ERROR") return event;
  throw new KubeApiError(`watch of ${path}`, event.object.code ?? 500, JSON.stringify(event.object));
}

/** One JSON document per line. */
function inJson<Raw extends KubeObject>(): Format<Raw> {
  return {
    split: splitLines(),
    open: (line) => ({ changedTo: versionOfChange(line), read: () => JSON.parse(line.toString("utf8")) }),
  };
}

const CHANGE = Buffer.from('{"type":"MODIFIED",');
const VERSION = Buffer.from('"resourceVersion":"');

/** If a line contains one version, it is that of the object: within strings, the quotes would be escaped. */
function versionOfChange(line: Buffer): string | undefined {
  if (!line.subarray(0, CHANGE.length).equals(CHANGE)) return undefined;
  const at = line.indexOf(VERSION);
  if (at === -1 || line.indexOf(VERSION, at + 1) !== -1) return undefined;
  const start = at + VERSION.length;
  return line.toString("latin1", start, line.indexOf(QUOTE, start));
}

/** One message per frame, which contains the encoded object. */
function inProtobuf<Raw extends KubeObject>(message: Message<Raw>): Format<Raw> {
  return {
    split: splitFrames(),
    open: (frame) => {
      const { type, object } = decodeWatchEvent(frame);
      return {
        changedTo: type === "MODIFIED" ? decode(objectVersion, object).metadata.resourceVersion : undefined,
        read: () =>
          type === "ERROR"
            ? { type, object: decode(status, object) }
            : { type, object: decode(message, object) },
      };
    },
  };
}
