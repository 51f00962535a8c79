import type { IncomingMessage, ServerResponse } from "node:http";

/** How much of an unread body is discarded so that the client gets to read the response, and for how long. */
const MAX_DISCARDED_BYTES = 65_536;
const MAX_DISCARDED_CHUNKS = 1024;
const MAX_DISCARD_MS = 1000;

export function announcesBody({ headers }: Pick<IncomingMessage, "headers">): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** Returns true if a response now would leave a part of the body unread. */
export function hasUnreadBody(request: IncomingMessage): boolean {
  return !request.complete && announcesBody(request);
}

/** Returns true if the rest is on its way and so short that reading it costs less than a new connection. */
export function isShortBody({ headers }: Pick<IncomingMessage, "headers">): boolean {
  if (headers["transfer-encoding"] !== undefined || headers.expect !== undefined) return false;
  return Number(headers["content-length"] ?? 0) <= MAX_DISCARDED_BYTES;
}

/**
 * Ends a response, which is written already, once the request's body has ended, but reads only a bounded part of it.
 * Closing the connection at once would reset it while the client still sends, and the client could lose the response.
 */
export function endAfterBody(request: IncomingMessage, response: ServerResponse): void {
  let bytes = 0;
  let chunks = 0;
  const end = () => {
    clearTimeout(timer);
    request.off("data", discard).off("end", end).off("close", end);
    response.end();
    if (!request.complete) request.socket.destroySoon();
  };
  const discard = (chunk: Buffer) => {
    bytes += chunk.length;
    chunks += 1;
    if (bytes > MAX_DISCARDED_BYTES || chunks > MAX_DISCARDED_CHUNKS) end();
  };
  const timer = setTimeout(end, MAX_DISCARD_MS).unref();
  request.on("data", discard).once("end", end).once("close", end);
  request.resume();
}
