import type { IncomingMessage, ServerResponse } from "node:http";

/** Maximum bytes of an unread body that are discarded so that the client can read the response, and time for that. */
const MAX_DISCARDED_BYTES = 65_536;
const MAX_DISCARD_MS = 1000;

export function announcesBody({ headers }: Pick<IncomingMessage, "headers">): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** Returns true if part of the body would be unread after a response now. */
export function hasUnreadBody(request: IncomingMessage): boolean {
  return !request.complete && announcesBody(request);
}

/** Returns true if the whole body is so short that reading it costs less than a new connection. */
export function isShortBody({ headers }: Pick<IncomingMessage, "headers">): boolean {
  if (headers["transfer-encoding"] !== undefined || headers.expect !== undefined) return false;
  return Number(headers["content-length"] ?? 0) <= MAX_DISCARDED_BYTES;
}

/**
 * Ends a response, which is already written, when the body of the request ends or a limit is reached. Closing the
 * connection at once would reset it while the client still sends, and the client could lose the response.
 */
export function endAfterBody(request: IncomingMessage, response: ServerResponse): void {
  const { socket } = request;
  let bytes = 0;
  const end = () => {
    // More of the body may arrive before the connection has ended.
    if (response.writableEnded) return;
    clearTimeout(timer);
    request.off("data", discard).off("end", end).off("close", end);
    response.end();
    if (!request.complete) socket.destroySoon();
  };
  const discard = (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > MAX_DISCARDED_BYTES) end();
  };
  const timer = setTimeout(end, MAX_DISCARD_MS).unref();
  request.on("data", discard).once("end", end).once("close", end);
  request.resume();
  if (!isShortBody(request)) bypassParser(request, discard, end);
}

/**
 * Stops the stream and the parser, because they take 30 ms for 64 KiB in chunks of one byte. No more requests on this
 * connection are served.
 */
function bypassParser(request: IncomingMessage, onData: (bytes: Buffer) => void, onEnd: () => void): void {
  request.push = (chunk: Buffer | null) => {
    if (chunk === null) onEnd();
    else onData(chunk);
    return true;
  };
  request.socket.removeAllListeners("data");
  request.socket.on("data", onData);
}
