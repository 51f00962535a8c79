import type { RequestListener } from "node:http";
import type { Socket } from "node:net";

/** Each waiting request costs memory until its response is out. */
const MAX_WAITING = 64;

const waiting = new WeakMap<Socket, number>();

/**
 * Closes a connection on which a client sends more requests ahead of their responses than any real client does. Node
 * reads no further on a connection whose responses are not read, but a single segment may bring thousands of requests.
 */
export function limitPipelining(listener: RequestListener): RequestListener {
  return (request, response) => {
    const { socket } = request;
    // A response gets its socket when those before it are out.
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
