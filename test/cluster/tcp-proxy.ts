import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

/** One connection: who came, and whom it is passed on to. */
interface Pair {
  readonly near: Socket;
  readonly far: Socket;
}

/**
 * Passes connections to 127.0.0.1 on to another port there, byte by byte, so that TLS goes through, and can
 * fail as a network does.
 */
export class TcpProxy {
  /** The port that it listens on. */
  readonly port: number;
  /** The port that new connections are forwarded to. */
  target: number;
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  #isFrozen = false;

  private constructor(server: Server, port: number, target: number) {
    this.#server = server;
    this.port = port;
    this.target = target;
    server.on("connection", (near) => this.#accept(near));
  }

  static async listen(target: number): Promise<TcpProxy> {
    const server = createServer();
    server.listen({ port: 0, host: "127.0.0.1" });
    await once(server, "listening");
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("it listens on a port");
    return new TcpProxy(server, address.port, target);
  }

  /** Connections stay open, new ones are taken, and nothing gets through. */
  freeze(): void {
    this.#isFrozen = true;
    for (const { near, far } of this.#pairs) {
      near.unpipe(far);
      far.unpipe(near);
    }
  }

  /** Delivers the bytes that were held back. */
  thaw(): void {
    // A pair that is joined twice delivers everything twice.
    if (!this.#isFrozen) return;
    this.#isFrozen = false;
    for (const pair of this.#pairs) join(pair);
  }

  /** Ends all connections, as a reset does; new ones are taken. */
  cut(): void {
    for (const { near, far } of this.#pairs) {
      near.destroy();
      far.destroy();
    }
  }

  close(): void {
    this.#server.close();
    this.cut();
  }

  #accept(near: Socket): void {
    const far = connect({ port: this.target, host: "127.0.0.1" });
    const pair = { near, far };
    this.#pairs.add(pair);
    const end = () => {
      this.#pairs.delete(pair);
      near.destroy();
      far.destroy();
    };
    for (const socket of [near, far]) socket.on("error", end).on("close", end);
    if (!this.#isFrozen) join(pair);
  }
}

function join({ near, far }: Pair): void {
  near.pipe(far);
  far.pipe(near);
}
