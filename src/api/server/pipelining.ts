import type { RequestListener } from "node:http";
import type { Socket } from "node:net";
import { announcesBody } from "../middleware/unread-body.ts";

/** Estimated memory of a waiting request until its response is written; a part of its body counts at least as much. */
const UNIT_BYTES = 10_240;

/** Maximum number of these units on a connection. */
const MAX_WAITING = 64;

/** Maximum number of units on all connections, 10 MiB together. No real client needs many. */
const MAX_WAITING_IN_TOTAL = 1024;

/**
 * Serves the requests of a connection one after the other, because one that changes something must not overtake another
 * (RFC 9112, section 9.3.2), or be served behind one whose response closes the connection.
 *
 * Closes a connection whose waiting requests and unread bodies exceed one of the limits, which no real client does. Node
 * stops reading from a connection whose responses are not read, but a single segment may contain thousands of requests,
 * which wait for as long as the client does not read the response before them. It also stops after 64 KiB of a body that
 * is not read, but these may be in as many parts, and the body of a GET is read only after its response is written.
 */
export function limitPipelining(listener: RequestListener): RequestListener {
  const waiting = new Map<Socket, number>();
  let total = 0;
  const add = (socket: Socket, units: number) => {
    waiting.set(socket, (waiting.get(socket) ?? 0) + units);
    total += units;
  };
  return (request, response) => {
    // A response gets its socket after the responses before it are written.
    const isWaiting = response.socket === null;
    if (!isWaiting && !announcesBody(request)) {
      listener(request, response);
      return;
    }
    const { socket } = request;
    const isFirst = !waiting.has(socket);
    let taken = 0;
    const take = (units: number) => {
      if ((waiting.get(socket) ?? 0) + units > MAX_WAITING || total + units > MAX_WAITING_IN_TOTAL) {
        socket.destroy();
        return false;
      }
      taken += units;
      add(socket, units);
      return true;
    };
    if (!take(isWaiting ? 1 : 0)) return;
    if (isFirst)
      socket.once("close", () => {
        total -= waiting.get(socket) ?? 0;
        waiting.delete(socket);
      });
    // The parser calls this with each part of the body.
    const push = request.push.bind(request);
    request.push = (part: Buffer | null) => {
      const isRead = request.readableFlowing !== null;
      return isRead || part === null || take(Math.ceil(part.length / UNIT_BYTES)) ? push(part) : false;
    };
    response.once("finish", () => {
      if (waiting.has(socket)) add(socket, -taken);
    });
    if (isWaiting) response.once("socket", () => listener(request, response));
    else listener(request, response);
  };
}
