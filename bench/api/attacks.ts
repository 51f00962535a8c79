/** The path of a service that the attacker may use, and the Authorization header for it. */
export interface AttackTarget {
  readonly path: string;
  readonly authorization: string;
}

/** One connection of an attack. */
export interface Blow {
  /** Bytes sent as soon as the connection is open. */
  readonly bytes: string;
  /** Statuses that the server may respond with. */
  readonly expected?: readonly number[];
  /** The client never reads the response. */
  readonly isUnread?: boolean;
}

/** Connections that an attacker opens again and again. */
export interface Attack {
  /** Name in the table. */
  readonly name: string;
  /** The attacked port; without it, the one of the API. */
  readonly port?: "operations";
  /** Number of concurrent connections. */
  readonly connections: number;
  /** Pause before a closed connection is opened again. */
  readonly pauseMs: number;
  /** Time over which the first connections are opened. */
  readonly rampMs: number;
  readonly blows: readonly Blow[];
}

export type AttackName =
  | "chunks"
  | "idle"
  | "bodies"
  | "patches"
  | "syntax"
  | "pipelining"
  | "pages"
  | "pipelinedPages"
  | "operations"
  | "scrapes";

const BODY_BYTES = 8 * 1024 * 1024;
const ONE_BYTE_CHUNKS = "1\r\n \r\n".repeat(64_000);
/** The longest response that needs no key, because the attacks do not accept gzip. */
const LONGEST_PAGE = "/docs/swagger-ui-bundle.js";
const JSON_TYPE = "Content-Type: application/json\r\n";

export function attacksOf({ path, authorization }: AttackTarget): Record<AttackName, Attack> {
  const key = `Authorization: ${authorization}\r\n`;
  const request = (method: string, target: string, headers: string, body = "") =>
    `${method} ${target} HTTP/1.1\r\nHost: bench\r\n${headers}\r\n${body}`;
  const chunked = `${JSON_TYPE}Transfer-Encoding: chunked\r\n`;
  const long = `${JSON_TYPE}Content-Length: ${BODY_BYTES}\r\n`;
  const body = " ".repeat(BODY_BYTES);
  const size = (cores: number) => JSON.stringify({ replicaCpuMillicores: cores * 1000 });
  const patch = (cores: number) =>
    request(
      "PATCH",
      path,
      `${key}${JSON_TYPE}Connection: close\r\nContent-Length: ${size(cores).length}\r\n`,
      size(cores),
    );
  return {
    chunks: {
      name: "bodies in 64,000 chunks of one byte",
      connections: 10,
      pauseMs: 1000,
      rampMs: 0,
      blows: [
        { bytes: request("PATCH", path, key + chunked, ONE_BYTE_CHUNKS), expected: [413, 429] },
        { bytes: request("PATCH", path, key + chunked, `${ONE_BYTE_CHUNKS}0\r\n\r\n`), expected: [413, 429] },
        { bytes: request("PATCH", path, chunked, ONE_BYTE_CHUNKS), expected: [401] },
      ],
    },
    idle: {
      name: "connections without credentials that stay open",
      connections: 1250,
      pauseMs: 2000,
      rampMs: 5000,
      blows: [
        { bytes: "" },
        { bytes: request("GET", path, "").slice(0, -6) },
        { bytes: request("GET", path, ""), expected: [401] },
      ],
    },
    bodies: {
      name: "8 MiB bodies of refused requests",
      connections: 4,
      pauseMs: 500,
      rampMs: 0,
      blows: [
        { bytes: request("PATCH", path, long, body), expected: [401] },
        { bytes: request("PATCH", "/none", long, body), expected: [404] },
        { bytes: request("PATCH", path, key + long, body), expected: [413, 429] },
      ],
    },
    patches: {
      name: "200 PATCHes of one service at once",
      connections: 200,
      pauseMs: 10_000,
      rampMs: 0,
      blows: Array.from({ length: 24 }, (_, at) => ({ bytes: patch(at + 1), expected: [200, 429] })),
    },
    syntax: {
      name: "malformed HTTP requests",
      connections: 2,
      pauseMs: 100,
      rampMs: 0,
      blows: [
        {
          bytes: request("GET", path, "Connection: Upgrade\r\nUpgrade: websocket\r\n").repeat(2),
          expected: [401],
        },
        { bytes: request("GET", path, key + "a: b\r\n".repeat(6700)), expected: [431] },
        { bytes: request("GET", path, key).replace("HTTP/1.1", "HTTP/2.0"), expected: [400] },
        {
          bytes: request("PATCH", path, `${JSON_TYPE}Content-Length: 20\r\nExpect: 100-continue\r\n`),
          expected: [401],
        },
        {
          bytes: request(
            "PATCH",
            path,
            `${key}${JSON_TYPE}Content-Length: 70000\r\nExpect: 100-continue\r\n`,
          ),
          expected: [413, 429],
        },
      ],
    },
    pipelining: {
      name: "64 KiB of pipelined requests",
      connections: 2,
      pauseMs: 500,
      rampMs: 0,
      blows: [
        { bytes: request("GET", path, "").repeat(400), expected: [401] },
        { bytes: request("GET", "/", "").repeat(1800), expected: [404] },
      ],
    },
    pages: {
      name: "long pages that are not read",
      connections: 250,
      pauseMs: 2000,
      rampMs: 5000,
      blows: [
        { bytes: request("GET", LONGEST_PAGE, ""), isUnread: true },
        { bytes: request("GET", "/openapi.json", ""), isUnread: true },
      ],
    },
    pipelinedPages: {
      name: "64 pipelined long pages that are not read",
      connections: 10,
      pauseMs: 1000,
      rampMs: 5000,
      blows: [{ bytes: request("GET", LONGEST_PAGE, "").repeat(64), isUnread: true }],
    },
    operations: {
      name: "operations port: connections that stay open",
      port: "operations",
      connections: 300,
      pauseMs: 1000,
      rampMs: 1000,
      blows: [
        { bytes: "" },
        { bytes: request("GET", "/healthz", "").slice(0, -6) },
        { bytes: request("GET", "/healthz", ""), expected: [200] },
        { bytes: request("GET", "/metrics", ""), isUnread: true },
      ],
    },
    scrapes: {
      name: "operations port: 64 KiB of pipelined scrapes",
      port: "operations",
      connections: 2,
      pauseMs: 500,
      rampMs: 0,
      blows: [{ bytes: request("GET", "/metrics", "").repeat(1500), expected: [200] }],
    },
  };
}
