import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { Agent, createServer, type Server as HttpsServer, request as httpsRequest } from "node:https";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { parse, stringify } from "yaml";
import { actionOf } from "../../../src/kube/call.ts";
import { certificatePair } from "../../support/fixtures/certificate.ts";

/** A request as the proxy sees it. */
export interface Asked {
  /** As RBAC calls it: `list`, `watch`, `patch` … */
  readonly verb: string;
  /** Plural, with the subresource: `deployments`, `pipescalings/status`. */
  readonly resource: string;
  /** With the query. */
  readonly url: string;
  /** Monotonic, in milliseconds. */
  readonly at: number;
}

/** The fate of a request. */
export type Fate =
  /** It reaches the server, and the response reaches the client: late, or in part, if the link is bad. */
  | ({ readonly type: "pass" } & Link)
  /** The connection ends before the server has it. */
  | { readonly type: "drop" }
  /** The server handles the request, and the connection ends before the client gets the response. */
  | { readonly type: "lose-response" }
  /** Nothing happens, for as long as the client likes to wait. */
  | { readonly type: "hold" }
  /** It never reaches the server; this is said in its place. */
  | ApiResponse;

interface ApiResponse {
  readonly type: "respond";
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
}

interface Link {
  /** The request waits for this before it goes on to the server. */
  readonly after?: Promise<unknown>;
  /** Every piece of the response body comes this much later. */
  readonly lateMs?: number;
  /** The connection ends after so long. */
  readonly cutAfterMs?: number;
  /** The connection ends when so many bytes of the body are through. */
  readonly cutAfterBytes?: number;
}

interface Met extends Asked {
  readonly fate: Fate["type"];
  /** Status of the server's response, once there is one. */
  code?: number;
}

const PASS: Fate = { type: "pass" };

/** A refusal as the API server words it. */
export function refusal(
  code: number,
  reason: string,
  headers: Readonly<Record<string, string>> = {},
): ApiResponse {
  const body = {
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    code,
    reason,
    message: "the proxy says so",
  };
  return { type: "respond", status: code, headers, body: JSON.stringify(body) };
}

/**
 * Stands between a client and the API server, and does to each request what the test says.
 *
 * It speaks TLS with a certificate of its own and passes the client's token on, so that the client is who it
 * is, with the rights that it has.
 */
export class FaultyProxy {
  /** The fate of a request; `undefined` lets it pass. */
  fate: (asked: Asked) => Fate | undefined = () => undefined;
  /** The server that a request is passed on to, where that is not the cluster's own. */
  elsewhere: (asked: Asked) => string | undefined = () => undefined;
  /** All requests so far, with what became of them. */
  readonly seen: Met[] = [];
  readonly #server: HttpsServer;
  readonly #cluster: Cluster;
  readonly #cert: string;
  readonly #agent: Agent;
  readonly #open = new Map<Asked, ServerResponse>();

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
    if (address === null || typeof address === "string") throw new Error("the proxy does not listen");
    return `https://127.0.0.1:${address.port}`;
  }

  /** A kubeconfig beside the given one with the same credentials, by way of this proxy. @returns its path */
  kubeconfig(path: string): string {
    const config = parse(readFileSync(path, "utf8"));
    config.clusters[0].cluster.server = this.url;
    config.clusters[0].cluster["certificate-authority-data"] = Buffer.from(this.#cert).toString("base64");
    const proxied = `${path}.${new URL(this.url).port}`;
    writeFileSync(proxied, stringify(config), { mode: 0o600 });
    return proxied;
  }

  /** Number of requests of this kind with this fate. */
  count(verb: string, resource: string, fate: Fate["type"]): number {
    return this.seen.filter((each) => each.verb === verb && each.resource === resource && each.fate === fate)
      .length;
  }

  /** Ends the connections of all watches, or of those of one kind, without a word. */
  cutWatches(resource?: string): void {
    for (const [asked, response] of this.#open) {
      if (asked.verb === "watch" && (resource ?? asked.resource) === asked.resource) response.destroy();
    }
  }

  async stop(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    this.#agent.destroy();
    await once(this.#server, "close");
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const asked = describe(request);
    const fate = this.fate(asked) ?? PASS;
    const met: Met = { ...asked, fate: fate.type };
    this.seen.push(met);
    this.#open.set(asked, response);
    response.once("close", () => this.#open.delete(asked));
    try {
      switch (fate.type) {
        case "hold":
          return;
        case "drop":
          response.destroy();
          return;
        case "respond":
          request.resume();
          response.writeHead(fate.status, { "content-type": "application/json", ...fate.headers });
          response.end(fate.body);
          return;
        case "lose-response":
          for await (const _ of await this.#forward(met, request, response));
          response.destroy();
          return;
        case "pass":
          await fate.after;
          await pass(await this.#forward(met, request, response), response, fate);
          return;
      }
    } catch {
      // When one side disconnects, the other side sees it as on a real network.
      response.destroy();
    }
  }

  /** The response of the server; its request ends when the client is gone. */
  async #forward(met: Met, request: IncomingMessage, response: ServerResponse): Promise<IncomingMessage> {
    const { method, headers } = request;
    const call = httpsRequest(new URL(met.url, this.elsewhere(met) ?? this.#cluster.server), {
      method,
      headers: forwarded(headers),
      agent: this.#agent,
    });
    response.once("close", () => call.destroy());
    request.pipe(call);
    const [fromServer]: IncomingMessage[] = await once(call, "response");
    if (fromServer?.statusCode === undefined) throw new Error("no response");
    met.code = fromServer.statusCode;
    return fromServer;
  }
}

function describe({ method = "GET", url = "/" }: IncomingMessage): Asked {
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
    // Each piece is late by as much, not by the sum of those before it.
    last = Promise.all([last, delay(lateMs, undefined, { ref: false })]).then(() => response.write(piece));
    if (left < 0) break;
  }
  await last;
  if (left < 0) response.destroy();
  else response.end();
}
