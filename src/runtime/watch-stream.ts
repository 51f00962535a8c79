import { KubeApiError } from "../kube/errors.ts";
import type { KubeObject } from "../kube/objects.ts";

const NEWLINE = 0x0a;
const QUOTE = 0x22;

/** One line of a watch. */
export interface WatchEvent<Raw extends KubeObject> {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK";
  readonly object: Raw;
}

interface ErrorEvent {
  readonly type: "ERROR";
  readonly object: { readonly code?: number };
}

/** The event of a change that is known already. The event stays unread. */
export interface KnownEvent {
  readonly type: "KNOWN";
  readonly resourceVersion: string;
}

export interface WatchOptions {
  /** The watched path, for errors. */
  readonly path: string;
  /** The change that made this version is known, so its event can stay unread. */
  readonly isKnown: (resourceVersion: string) => boolean;
}

/**
 * The events of a watch's body, which has one JSON document per line.
 *
 * @throws KubeApiError for an event of type ERROR
 */
export async function* watchEvents<Raw extends KubeObject>(
  body: AsyncIterable<Buffer>,
  { path, isKnown }: WatchOptions,
): AsyncGenerator<WatchEvent<Raw> | KnownEvent> {
  const split = lineSplitter();
  for await (const chunk of body) {
    for (const line of split(chunk)) {
      const resourceVersion = versionOfChange(line);
      if (resourceVersion !== undefined && isKnown(resourceVersion)) yield { type: "KNOWN", resourceVersion };
      else yield readEvent<Raw>(line, path);
    }
  }
}

function readEvent<Raw extends KubeObject>(line: Buffer, path: string): WatchEvent<Raw> {
  const event: WatchEvent<Raw> | ErrorEvent = JSON.parse(line.toString("utf8"));
  if (event.type !== "ERROR") return event;
  throw new KubeApiError(`watch of ${path}`, event.object.code ?? 500, JSON.stringify(event.object));
}

/** @returns a function that returns the lines that a chunk completes, without empty ones */
function lineSplitter(): (chunk: Buffer) => Buffer[] {
  // Chunks are joined only at the end of a line, so that a long line is not copied once per chunk.
  let pending: Buffer[] = [];
  return (chunk) => {
    const lines: Buffer[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      pending.push(chunk.subarray(start, end));
      lines.push(pending.length === 1 && pending[0] ? pending[0] : Buffer.concat(pending));
      pending = [];
      start = end + 1;
    }
    if (start < chunk.length) pending.push(chunk.subarray(start));
    return lines.filter((line) => line.length > 0);
  };
}

const CHANGE = Buffer.from('{"type":"MODIFIED",');
const VERSION = Buffer.from('"resourceVersion":"');

/** The only version in a line is the object's own: inside of strings, the quotes would be escaped. */
function versionOfChange(line: Buffer): string | undefined {
  if (!line.subarray(0, CHANGE.length).equals(CHANGE)) return undefined;
  const at = line.indexOf(VERSION);
  if (at === -1 || line.indexOf(VERSION, at + 1) !== -1) return undefined;
  const start = at + VERSION.length;
  return line.toString("latin1", start, line.indexOf(QUOTE, start));
}
