import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { certificatePair } from "@pipe-scaling/local-cluster/certificate";
import { onTestFinished } from "vitest";

/** Identity of the holder of the Lease when it is written. */
export const CONTROLLER = "the controller of the test";

/** A request that the server received. */
export interface SeenRequest {
  readonly method: string;
  readonly url: URL;
  /** Identifies the connection of the client. */
  readonly connection: Socket | null;
}

/**
 * An API server over TLS without any objects except one Lease: its lists are empty, and its watches send an empty
 * initial list and then nothing. For tests of connections.
 */
export class FakeApiServer {
  readonly url: string;
  readonly requests: SeenRequest[] = [];
  /** Returns true if the response to a list or a watch of this path is 403. */
  forbids: (path: string) => boolean = () => false;
  readonly #watches = new Map<ServerResponse, string>();
  #lease: { readonly metadata: object; readonly spec: object } | undefined;
  #version = 1;

  private constructor(url: string) {
    this.url = url;
  }

  /** Starts a server that stops at the end of the test. */
  static async start(): Promise<FakeApiServer> {
    const server = createServer(certificatePair("kubernetes"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", 5000, resolve));
    onTestFinished(() => {
      server.close();
      server.closeAllConnections();
    });
    const address: AddressInfo | string | null = server.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    const fake = new FakeApiServer(`https://127.0.0.1:${address.port}`);
    server.on("request", (request: IncomingMessage, response: ServerResponse) => {
      const url = new URL(request.url ?? "/", fake.url);
      fake.requests.push({ method: request.method ?? "", url, connection: request.socket });
      fake.#respond(request.method ?? "", url, response);
    });
    return fake;
  }

  /** Paths of the open watches. */
  get watched(): readonly string[] {
    return [...this.#watches.values()];
  }

  /** Ends the open watches of paths that it forbids, as the API server does eventually. */
  endForbiddenWatches(): void {
    for (const [response, path] of this.#watches) if (this.forbids(path)) response.end();
  }

  #respond(method: string, url: URL, response: ServerResponse): void {
    const { pathname } = url;
    if (pathname.includes("/leases")) this.#respondWithLease(method, response);
    else if (/watch|limit/.test(url.search) && this.forbids(pathname))
      send(response, 403, { code: 403, message: `this is forbidden: User "test" cannot list ${pathname}` });
    else if (url.searchParams.has("watch")) this.#watch(pathname, response);
    else if (pathname === "/version") send(response, 200, {});
    else if (url.searchParams.has("limit"))
      send(response, 200, { metadata: { resourceVersion: "1" }, items: [] });
    else send(response, 404, { code: 404 });
  }

  #respondWithLease(method: string, response: ServerResponse): void {
    if (method !== "GET") {
      this.#version += 1;
      this.#lease = {
        metadata: { name: "lease", resourceVersion: String(this.#version) },
        spec: { holderIdentity: CONTROLLER, leaseDurationSeconds: 15 },
      };
    }
    send(response, this.#lease ? 200 : 404, this.#lease ?? { code: 404 });
  }

  #watch(path: string, response: ServerResponse): void {
    this.#watches.set(response, path);
    response.on("close", () => this.#watches.delete(response));
    const metadata = { resourceVersion: "1", annotations: { "k8s.io/initial-events-end": "true" } };
    response.writeHead(200).write(`${JSON.stringify({ type: "BOOKMARK", object: { metadata } })}\n`);
  }
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
