import type { RequestListener } from "node:http";
import type { Socket } from "node:net";
import { contextOf } from "../middleware/request-context.ts";
import type { Connections, Exchange } from "./connections.ts";

/** Each waiting request costs memory until its response is out. */
const MAX_WAITING = 64;

/** Requests of each connection whose response has to wait for another; `ignoring` once no more are served. */
const waiting = new WeakMap<Socket, number | "ignoring">();

/**
 * Closes a connection on which a client sends more requests ahead of their responses than any real client does. Node
 * reads no further on a connection whose responses are not read, but a single segment may bring thousands of requests.
 *
 * Ignores requests behind a response that closes the connection (RFC 9112, section 9.6): the client would never learn
 * what became of them.
 */
export function limitPipelining(
  connections: Pick<Connections, "latest">,
  listener: RequestListener,
): RequestListener {
  return (request, response) => {
    const { socket } = request;
    const ahead = waiting.get(socket) ?? 0;
    if (ahead === "ignoring") return;
    if (isClosing(connections.latest(socket))) {
      ignoreRequests(socket);
      return;
    }
    // A response gets its socket when those before it are out.
    if (response.socket === null) {
      if (ahead === MAX_WAITING) {
        ignoreRequests(socket);
        socket.destroy();
        return;
      }
      waiting.set(socket, ahead + 1);
      response.once("finish", () => finishWaiting(socket));
    }
    listener(request, response);
  };
}

function isClosing(latest: Exchange | undefined): boolean {
  return latest?.response.headersSent === true && contextOf(latest.request)?.closeConnection === true;
}

function finishWaiting(socket: Socket): void {
  const count = waiting.get(socket);
  if (typeof count === "number") waiting.set(socket, count - 1);
}

/**
 * When the connection closes, Node makes an error for each ignored request, and its stack trace would take longer than
 * the request itself: 40 ms for the requests of one segment.
 */
function ignoreRequests(socket: Socket): void {
  waiting.set(socket, "ignoring");
  let limit = Error.stackTraceLimit;
  socket.prependOnceListener("close", () => {
    limit = Error.stackTraceLimit;
    Error.stackTraceLimit = 0;
  });
  socket.once("close", () => {
    Error.stackTraceLimit = limit;
  });
}
