import type { RequestListener } from "node:http";
import type { Socket } from "node:net";

/** Each waiting request takes about 10 KB of memory until its response is written. */
const MAX_WAITING = 64;

/** Requests that wait on all connections: no real client sends many, and together they take at most 10 MB. */
const MAX_WAITING_IN_TOTAL = 1024;

/**
 * Serves the requests of a connection one after the other, because one that changes something must not overtake another
 * (RFC 9112, section 9.3.2), or be served behind one whose response closes the connection.
 *
 * Closes a connection with more pipelined requests than any real client sends. Node stops reading from a connection
 * whose responses are not read, but a single segment may contain thousands of requests, which wait for as long as the
 * client does not read the response before them.
 */
export function limitPipelining(listener: RequestListener): RequestListener {
  const waiting = new Map<Socket, number>();
  let total = 0;
  const add = (socket: Socket, count: number) => {
    waiting.set(socket, (waiting.get(socket) ?? 0) + count);
    total += count;
  };
  return (request, response) => {
    const { socket } = request;
    // A response gets its socket after the responses before it are written.
    if (response.socket === null) {
      const ahead = waiting.get(socket);
      if (ahead === MAX_WAITING || total === MAX_WAITING_IN_TOTAL) {
        socket.destroy();
        return;
      }
      if (ahead === undefined)
        socket.once("close", () => {
          total -= waiting.get(socket) ?? 0;
          waiting.delete(socket);
        });
      add(socket, 1);
      response.once("finish", () => {
        if (waiting.has(socket)) add(socket, -1);
      });
      response.once("socket", () => listener(request, response));
    } else listener(request, response);
  };
}
