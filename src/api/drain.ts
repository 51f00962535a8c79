import { once } from "node:events";
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { Server as TlsServer } from "node:tls";
import type { Clock } from "../runtime/clock.ts";

export interface DrainOptions {
  readonly clock: Clock;
  /** How long a client may take to send its headers; the server itself no longer looks once it is closed. */
  readonly headersMs: number;
  /** How long requests under way may take. */
  readonly mostMs: number;
  /** Whether an answer is owed on a connection. */
  readonly isServing: (socket: Socket) => boolean;
}

/** The end of a server: no new connections, and the old ones as soon as they owe nothing. */
export class Drain {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #draining = false;

  /** To be made before the server listens. */
  constructor(server: Server) {
    this.#server = server;
    server.on(server instanceof TlsServer ? "secureConnection" : "connection", (socket: Socket) => {
      if (this.#draining) {
        socket.destroy();
        return;
      }
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
  }

  /** Resolves when the last connection is closed. Clients are told meanwhile by `Connection: close`. */
  async run({ clock, headersMs, mostMs, isServing }: DrainOptions): Promise<void> {
    this.#draining = true;
    const server = this.#server;
    const closed = once(server, "close");
    // Closes those that wait for their next request, but not those that have never had one.
    server.close();
    this.#destroy((socket) => socket.bytesRead === 0);
    const cancels = [
      clock.after(headersMs, () => this.#destroy((socket) => !isServing(socket))),
      clock.after(mostMs, () => this.#destroy(() => true)),
    ];
    await closed;
    for (const cancel of cancels) cancel();
  }

  #destroy(isMeant: (socket: Socket) => boolean): void {
    for (const socket of this.#sockets) if (isMeant(socket)) socket.destroy();
  }
}
