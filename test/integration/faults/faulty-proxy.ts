import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { Agent, createServer, type Server as HttpsServer, request as httpsRequest } from "node:https";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { certificatePair } from "@pipe-scaling/local-cluster/certificate";
import { parse, stringify } from "yaml";
import { actionOf } from "../../../src/kube/call.ts";

/** A request that the proxy receives. */
export interface ProxiedRequest {
  /** Verb of RBAC: `list`, `watch`, `patch`, … */
  readonly verb: string;
  /** Plural, with the subresource: `deployments`, `pipescalings/status`. */
  readonly resource: string;
  /** Path and query. */
  readonly url: string;
  /** Time of its arrival: monotonic, in milliseconds. */
  readonly at: number;
}

/** How the proxy handles a request. */
export type Handling =
  /** Forwards the request, and the response, which can be delayed or cut. */
  | ({ readonly type: "pass" } & Link)
  /** Closes the connection, and the server does not get the request. */
  | { readonly type: "drop" }
  /** Forwards the request, but closes the connection before the client gets the response. */
  | { readonly type: "lose-response" }
  /** Does nothing until the client closes the connection. */
  | { readonly type: "hold" }
  /** Sends this response, and the server does not get the request. */
  | ApiResponse;

interface ApiResponse {
  readonly type: "respond";
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
}

interface Link {
  /** The request is forwarded when this resolves. */
  readonly after?: Promise<unknown>;
  /** Delay of each part of the response body. */
  readonly lateMs?: number;
  /** The connection is closed after this time. */
  readonly cutAfterMs?: number;
  /** The connection is closed after this number of bytes of the body. */
  readonly cutAfterBytes?: number;
}

interface HandledRequest extends ProxiedRequest {
  readonly handling: Handling["type"];
  /** Status of the response of the server; absent without one. */
  code?: number;
}

const PASS: Handling = { type: "pass" };

/** An error in the format of the API server. */
export function errorResponse(
  code: number,
  reason: string,
  headers: Readonly<Record<string, string>> = {},
  message = "the proxy responded",
): ApiResponse {
  const body = {
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    code,
    reason,
    message,
  };
  return { type: "respond", status: code, headers, body: JSON.stringify(body) };
}

/**
 * A proxy between a client and the API server that handles each request as the test decides. It has its own certificate,
 * and forwards the token of the client, which therefore keeps its permissions.
 */
export class FaultyProxy {
  /** Decides how a request is handled; `undefined` forwards it. */
  handle: (request: ProxiedRequest) => Handling | undefined = () => undefined;
  /** URL of the server that a request is forwarded to; `undefined` is that of the cluster. */
  serverFor: (request: ProxiedRequest) => string | undefined = () => undefined;
  /** All requests so far, and how they were handled. */
  readonly requests: HandledRequest[] = [];
  readonly #server: HttpsServer;
  readonly #cluster: Cluster;
  readonly #cert: string;
  readonly #agent: Agent;
  readonly #open = new Map<ProxiedRequest, ServerResponse>();

  private constructor(cluster: Cluster) {
    const pair = certificatePair("proxy");
    this.#cluster = cluster;
    this.#cert = pair.cert;
    this.#agent = new Agent({ keepAlive: true, ca: readFileSync(join(cluster.dir, "pki", "ca.crt")) });
    this.#server = createServer(pair, (request, response) => void this.#serve(request, response));
  }

  static async start(cluster: Cluster): Promise<FaultyProxy> {
    const proxy = new FaultyProxy(cluster);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  get url(): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the proxy is not listening");
    return `https://127.0.0.1:${address.port}`;
  }

  /** Copies a kubeconfig, with this proxy as its server. @returns the path of the copy */
  kubeconfig(path: string): string {
    const config = parse(readFileSync(path, "utf8"));
    config.clusters[0].cluster.server = this.url;
    config.clusters[0].cluster["certificate-authority-data"] = Buffer.from(this.#cert).toString("base64");
    const proxied = `${path}.${new URL(this.url).port}`;
    writeFileSync(proxied, stringify(config), { mode: 0o600 });
    return proxied;
  }

  /** Number of requests of this kind that were handled in this way. */
  count(verb: string, resource: string, handling: Handling["type"]): number {
    return this.requests.filter(
      (each) => each.verb === verb && each.resource === resource && each.handling === handling,
    ).length;
  }

  /** Closes the connections of all watches, or of those of one kind. */
  cutWatches(resource?: string): void {
    for (const [request, response] of this.#open) {
      if (request.verb === "watch" && (resource ?? request.resource) === request.resource) response.destroy();
    }
  }

  async stop(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    this.#agent.destroy();
    await once(this.#server, "close");
  }

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = describe(incoming);
    const handling = this.handle(request) ?? PASS;
    const handled: HandledRequest = { ...request, handling: handling.type };
    this.requests.push(handled);
    this.#open.set(request, response);
    response.once("close", () => this.#open.delete(request));
    try {
      switch (handling.type) {
        case "hold":
          return;
        case "drop":
          response.destroy();
          return;
        case "respond":
          incoming.resume();
          response.writeHead(handling.status, { "content-type": "application/json", ...handling.headers });
          response.end(handling.body);
          return;
        case "lose-response":
          for await (const _ of await this.#forward(handled, incoming, response));
          response.destroy();
          return;
        case "pass":
          await handling.after;
          await pass(await this.#forward(handled, incoming, response), response, handling);
          return;
      }
    } catch {
      // If one side closes its connection, so does the other.
      response.destroy();
    }
  }

  /** Forwards a request, until the client closes its connection. Returns the response of the server. */
  async #forward(
    handled: HandledRequest,
    incoming: IncomingMessage,
    response: ServerResponse,
  ): Promise<IncomingMessage> {
    const { method, headers } = incoming;
    const call = httpsRequest(new URL(handled.url, this.serverFor(handled) ?? this.#cluster.server), {
      method,
      headers: forwarded(headers),
      agent: this.#agent,
    });
    response.once("close", () => call.destroy());
    incoming.pipe(call);
    const [fromServer]: IncomingMessage[] = await once(call, "response");
    if (fromServer?.statusCode === undefined) throw new Error("no response");
    handled.code = fromServer.statusCode;
    return fromServer;
  }
}

function describe({ method = "GET", url = "/" }: IncomingMessage): ProxiedRequest {
  const { pathname: path, searchParams } = new URL(url, "https://cluster");
  const action = actionOf({
    path,
    query: { watch: searchParams.get("watch") === "true" },
    ...(isMethod(method) ? { method } : {}),
  });
  return { ...action, url, at: performance.now() };
}

function isMethod(text: string): text is "GET" | "POST" | "PUT" | "PATCH" | "DELETE" {
  return ["GET", "POST", "PUT", "PATCH", "DELETE"].includes(text);
}

function forwarded({ host: _host, connection: _connection, ...headers }: IncomingHttpHeaders) {
  return headers;
}

async function pass(fromServer: IncomingMessage, response: ServerResponse, link: Link): Promise<void> {
  const { lateMs = 0, cutAfterMs, cutAfterBytes = Number.POSITIVE_INFINITY } = link;
  const { "content-type": type, "retry-after": retryAfter } = fromServer.headers;
  response.writeHead(fromServer.statusCode ?? 500, {
    ...(type === undefined ? {} : { "content-type": type }),
    ...(retryAfter === undefined ? {} : { "retry-after": retryAfter }),
  });
  response.flushHeaders();
  const cut = cutAfterMs === undefined ? undefined : setTimeout(() => response.destroy(), cutAfterMs);
  response.once("close", () => clearTimeout(cut));
  let left = cutAfterBytes;
  let last: Promise<unknown> = Promise.resolve();
  for await (const chunk of fromServer) {
    const piece: Buffer = chunk.subarray(0, left);
    left -= chunk.length;
    // Each part has the same delay, counted from its arrival.
    last = Promise.all([last, delay(lateMs, undefined, { ref: false })]).then(() => response.write(piece));
    if (left < 0) break;
  }
  await last;
  if (left < 0) response.destroy();
  else response.end();
}
