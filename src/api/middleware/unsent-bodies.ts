import type { Response } from "express";

/** The metrics of an organization with 3,000 services are 4.3 MB long, and the container has 256 MiB. */
const MAX_BYTES = 32 * 2 ** 20;

/**
 * The long bodies of responses that are in memory until their clients have read them. Beyond a sum of bytes, the
 * connection without progress for the longest time is closed, so that clients that do not read cannot exhaust the
 * memory, and those that read get their responses. A single body may be longer.
 */
export class UnsentBodies {
  readonly #maxBytes: number;
  /** In the order of their last progress. A connection has at most one, because its requests are served in turn. */
  readonly #bodies = new Map<Response, number>();
  #bytes = 0;

  constructor(maxBytes = MAX_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /** The sum of their lengths. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Call it before the first part is sent. May close connections. */
  add(response: Response, bytes: number): void {
    // Nothing is kept for a client that has disconnected.
    if (response.req.socket.destroyed) return;
    this.#bodies.set(response, bytes);
    this.#bytes += bytes;
    response.once("close", () => this.remove(response));
    this.#makeRoom();
  }

  /** Call it when a part has been sent. */
  progress(response: Response): void {
    const bytes = this.#bodies.get(response);
    // A deleted and reinserted entry is the last one of a Map.
    if (bytes !== undefined && this.#bodies.delete(response)) this.#bodies.set(response, bytes);
  }

  /** Call it when the body is no longer needed. */
  remove(response: Response): void {
    this.#bytes -= this.#bodies.get(response) ?? 0;
    this.#bodies.delete(response);
  }

  #makeRoom(): void {
    for (const response of this.#bodies.keys()) {
      if (this.#bytes <= this.#maxBytes || this.#bodies.size === 1) return;
      const { req } = response;
      req.context.rawStatus = 503;
      req.context.error = new Error("the client did not read its response while others needed memory");
      this.remove(response);
      req.socket.destroy();
    }
  }
}
