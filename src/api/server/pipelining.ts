import type { RequestListener } from "node:http";
import type { Socket } from "node:net";

/** Each waiting request costs memory until its response is written. */
const MAX_WAITING = 64;

const waiting = new WeakMap<Socket, number>();

/**
 * Closes a connection with more pipelined requests than any real client sends. Node stops reading from a connection
 * whose responses are not read, but a single segment may contain thousands of requests.
 */
export function limitPipelining(listener: RequestListener): RequestListener {
  return (request, response) => {
    const { socket } = request;
    // A response gets its socket after the responses before it are written.
    if (response.socket === null) {
      const ahead = waiting.get(socket) ?? 0;
      if (ahead === MAX_WAITING) {
        socket.destroy();
        return;
      }
      waiting.set(socket, ahead + 1);
      response.once("finish", () => waiting.set(socket, (waiting.get(socket) ?? 0) - 1));
    }
    listener(request, response);
  };
}
