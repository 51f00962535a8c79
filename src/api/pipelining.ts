import type { RequestListener } from "node:http";
import type { Socket } from "node:net";

/** Each costs memory until its answer is out, whatever was asked and by whom. */
const MOST_WAITING = 64;

const waiting = new WeakMap<Socket, number>();

/**
 * Closes a connection on which a client sends more requests ahead of their answers than any has reason to.
 * Node reads no further on a connection whose answers are not taken, but by then a single segment may have
 * brought thousands of requests.
 */
export function limitPipelining(listener: RequestListener): RequestListener {
  return (request, response) => {
    const { socket } = request;
    // A response has its socket as soon as those before it are out.
    if (response.socket === null) {
      const ahead = waiting.get(socket) ?? 0;
      if (ahead === MOST_WAITING) {
        socket.destroy();
        return;
      }
      waiting.set(socket, ahead + 1);
      response.once("finish", () => waiting.set(socket, (waiting.get(socket) ?? 0) - 1));
    }
    listener(request, response);
  };
}
