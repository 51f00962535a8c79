import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { rateLimitKey } from "./rate-limit-key.ts";

/** Reasons for closing or refusing a connection: values of the label of a metric. */
export const DROP_REASONS = ["evicted", "source_limit", "connection_limit"] as const;
export type DropReason = (typeof DROP_REASONS)[number];

export interface ConnectionLimits {
  readonly total: number;
  /** Per source address, or IPv6 /64. */
  readonly perSource: number;
}

/** A request and its response. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** The part of a limit up to which connections that are not authenticated replace idle ones that are. */
const UNAUTHENTICATED_SHARE = 1 / 4;

interface Connection {
  /** Remote address and port. */
  readonly key: string;
  /** The socket on which requests arrive. With TLS, the TLS socket replaces the TCP socket after the handshake. */
  socket: Socket;
  readonly source: string;
  latest: Exchange | undefined;
}

export interface ConnectionsOptions {
  readonly server: Server;
  /** Proxies have no limit per source, because many clients share their addresses. */
  readonly isTrustedProxy: (address: string) => boolean;
  /** Asked about the last request on a connection; before its first one, a connection is not authenticated. */
  readonly isAuthenticated: (request: IncomingMessage) => boolean;
  readonly onDrop: (reason: DropReason, source: string) => void;
  readonly limits: ConnectionLimits;
}

/**
 * The open connections of a server, and their limits. At a limit, a new connection replaces an open one, so that
 * clients without credentials cannot exhaust the server: the least recently used connection among those whose last
 * request was not authenticated, or else among those without a pending response. If there is none, the new connection
 * is refused. A response is pending until its headers are sent, so a client that sends the headers of its next request
 * slowly, does not read a response, or still sends a rejected body, can lose its connection.
 *
 * Before its first request, a connection counts as not authenticated. If all others are authenticated, each new one
 * would replace the one before it. So while fewer than a quarter of the limit are not authenticated, the authenticated
 * connections without a pending response are replaced first, those between two requests before those whose response is
 * being sent.
 */
export class Connections {
  readonly #options: ConnectionsOptions;
  /** The keys are remote addresses and ports; the order is that of the last use. */
  readonly #open = new Map<string, Connection>();
  readonly #perSource = new Map<string, number>();
  readonly #bySocket = new WeakMap<Duplex, Connection>();
  #isShuttingDown = false;

  /** Must be created before the server listens. */
  constructor(options: ConnectionsOptions) {
    this.#options = options;
    // With TLS, the first event has the TCP socket before the handshake, and the second the TLS socket after it.
    options.server.on("connection", (socket: Socket) => this.#accept(socket));
    options.server.on("secureConnection", (socket: Socket) => this.#secure(socket));
  }

  get size(): number {
    return this.#open.size;
  }

  /** Call it for each request, before it is served. */
  begin(exchange: Exchange): void {
    const { socket } = exchange.request;
    const connection = this.#bySocket.get(socket);
    if (!connection) return;
    connection.latest = exchange;
    // A deleted and reinserted entry is the last one of a Map.
    if (this.#open.delete(connection.key)) this.#open.set(connection.key, connection);
  }

  /** Returns the last request on a connection, with its response; `undefined` before the first request. */
  latest(socket: Duplex): Exchange | undefined {
    return this.#bySocket.get(socket)?.latest;
  }

  /** Closes connections on which no byte of a request has arrived, and from now on each new one. */
  shutDown(): void {
    this.#isShuttingDown = true;
    this.#close(({ socket }) => socket.bytesRead === 0);
  }

  closeIdle(): void {
    this.#close(isIdle);
  }

  closeAll(): void {
    this.#close(() => true);
  }

  #accept(socket: Socket): void {
    const { remoteAddress } = socket;
    // Without a remote address, the client has already disconnected.
    if (this.#isShuttingDown || remoteAddress === undefined) {
      socket.destroy();
      return;
    }
    const source = rateLimitKey(remoteAddress);
    if (!this.#makeRoom(source, this.#options.isTrustedProxy(remoteAddress))) {
      socket.destroy();
      return;
    }
    const key = keyOf(socket);
    // The client has closed a connection and reuses its port before this process has seen the end.
    const earlier = this.#open.get(key);
    if (earlier) this.#remove(earlier);
    const connection: Connection = { key, socket, source, latest: undefined };
    this.#open.set(key, connection);
    this.#bySocket.set(socket, connection);
    this.#perSource.set(source, (this.#perSource.get(source) ?? 0) + 1);
    socket.once("close", () => this.#remove(connection));
  }

  /** Does nothing if the connection was removed before. */
  #remove(connection: Connection): void {
    const { key, source } = connection;
    if (this.#open.get(key) !== connection) return;
    this.#open.delete(key);
    const count = (this.#perSource.get(source) ?? 1) - 1;
    if (count === 0) this.#perSource.delete(source);
    else this.#perSource.set(source, count);
  }

  #secure(socket: Socket): void {
    const connection = this.#open.get(keyOf(socket));
    if (!connection || this.#isShuttingDown) {
      socket.destroy();
      return;
    }
    connection.socket = socket;
    this.#bySocket.set(socket, connection);
  }

  /** @returns whether a connection from this source may be accepted */
  #makeRoom(source: string, isTrustedProxy: boolean): boolean {
    const { total, perSource } = this.#options.limits;
    if (!isTrustedProxy && (this.#perSource.get(source) ?? 0) >= perSource) {
      if (this.#evict(perSource, (connection) => connection.source === source)) return true;
      this.#options.onDrop("source_limit", source);
      return false;
    }
    if (this.#open.size < total || this.#evict(total, () => true)) return true;
    this.#options.onDrop("connection_limit", source);
    return false;
  }

  /** @param limit the one that the candidates have reached */
  #evict(limit: number, isCandidate: (connection: Connection) => boolean): boolean {
    let unauthenticated: Connection | undefined;
    let unauthenticatedCount = 0;
    let idle: Connection | undefined;
    let sending: Connection | undefined;
    for (const connection of this.#open.values()) {
      if (!isCandidate(connection)) continue;
      if (!this.#hasAuthenticated(connection)) {
        unauthenticated ??= connection;
        unauthenticatedCount += 1;
      } else if (isIdle(connection)) idle ??= connection;
      else if (!hasPendingResponse(connection)) sending ??= connection;
    }
    const authenticated = idle ?? sending;
    const hasShare = unauthenticatedCount >= limit * UNAUTHENTICATED_SHARE;
    const evicted = hasShare ? (unauthenticated ?? authenticated) : (authenticated ?? unauthenticated);
    if (evicted) this.#drop(evicted);
    return evicted !== undefined;
  }

  #hasAuthenticated({ latest }: Connection): boolean {
    return latest !== undefined && this.#options.isAuthenticated(latest.request);
  }

  #drop(connection: Connection): void {
    // Removed now, because `close` is emitted later: the connection must not count any more.
    this.#remove(connection);
    connection.socket.destroy();
    this.#options.onDrop("evicted", connection.source);
  }

  #close(isSelected: (connection: Connection) => boolean): void {
    for (const connection of [...this.#open.values()])
      if (isSelected(connection)) connection.socket.destroy();
  }
}

function keyOf({ remoteAddress = "", remotePort = 0 }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

function isIdle({ latest }: Connection): boolean {
  return latest === undefined || latest.response.writableFinished;
}

function hasPendingResponse(connection: Connection): boolean {
  const { latest } = connection;
  if (latest === undefined || isIdle(connection)) return false;
  // A response without a socket waits for the responses before it.
  return latest.response.socket === null || !latest.response.headersSent;
}
