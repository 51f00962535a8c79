import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

/** A connection of a client, and its connection to the target. */
interface Pair {
  readonly near: Socket;
  readonly far: Socket;
}

/** Forwards connections to another port of 127.0.0.1 unread, so TLS works, and simulates network failures. */
export class TcpProxy {
  /** Port that it listens on. */
  readonly port: number;
  /** Port that new connections are forwarded to. */
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
    if (address === null || typeof address === "string") throw new Error("the proxy has no port");
    return new TcpProxy(server, address.port, target);
  }

  /** Keeps connections open and accepts new ones, but forwards nothing. */
  freeze(): void {
    this.#isFrozen = true;
    for (const { near, far } of this.#pairs) {
      near.unpipe(far);
      far.unpipe(near);
    }
  }

  /** Forwards the bytes that have arrived meanwhile. */
  thaw(): void {
    // If it were joined twice, a pair would forward everything twice.
    if (!this.#isFrozen) return;
    this.#isFrozen = false;
    for (const pair of this.#pairs) join(pair);
  }

  /** Closes all connections, but accepts new ones. */
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
