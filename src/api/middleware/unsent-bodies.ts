import type { Socket } from "node:net";
import type { Response } from "express";

/** The metrics of an organization with 3,000 services have 4.3 MB, and the container has 256 MiB. */
const MAX_BYTES = 32 * 2 ** 20;

type Bodies = Map<Response, number>;

/**
 * The long bodies of responses that are in memory until their clients have read them. Beyond a sum of bytes, the
 * connection without progress for the longest time is closed, so that clients that do not read cannot exhaust the
 * memory, and those that read get their responses. A single body may be longer.
 */
export class UnsentBodies {
  readonly #maxBytes: number;
  /** In the order of their last progress. A connection stays until it closes. */
  readonly #connections = new Map<Socket, Bodies>();
  #bytes = 0;
  #count = 0;

  constructor(maxBytes = MAX_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /** The sum of their lengths. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Call it before the first part is sent. May close connections, and this one too if requests are pipelined on it. */
  add(response: Response, bytes: number): void {
    const { socket } = response.req;
    // Nothing is kept for a client that has disconnected.
    if (socket.destroyed) return;
    const bodies = this.#connections.get(socket);
    if (bodies) {
      bodies.set(response, bytes);
    } else {
      this.#connections.set(socket, new Map([[response, bytes]]));
      socket.once("close", () => this.#forget(socket));
    }
    this.#bytes += bytes;
    this.#count += 1;
    this.progress(response);
    this.#makeRoom();
  }

  /** Call it when a part has been sent. */
  progress({ req: { socket } }: Response): void {
    const bodies = this.#connections.get(socket);
    // A deleted and reinserted entry is the last one of a Map.
    if (bodies && this.#connections.delete(socket)) this.#connections.set(socket, bodies);
  }

  /** Call it when the body is no longer needed. */
  remove(response: Response): void {
    const bodies = this.#connections.get(response.req.socket);
    const bytes = bodies?.get(response);
    if (bytes === undefined) return;
    bodies?.delete(response);
    this.#bytes -= bytes;
    this.#count -= 1;
  }

  #makeRoom(): void {
    for (const [socket, bodies] of this.#connections) {
      if (this.#bytes <= this.#maxBytes || this.#count === 1) return;
      if (bodies.size === 0) continue;
      for (const { req } of bodies.keys()) {
        req.context.rawStatus = 503;
        req.context.error = new Error("the client did not read its response while others needed memory");
      }
      this.#forget(socket);
      socket.destroy();
    }
  }

  #forget(socket: Socket): void {
    const bodies = this.#connections.get(socket);
    for (const response of [...(bodies?.keys() ?? [])]) this.remove(response);
    this.#connections.delete(socket);
  }
}
