import { createServer, type Server } from "node:http";
import type { Registry } from "prom-client";

/** Whether the process can serve; `problem` says why not. */
export interface Readiness {
  readonly ready: boolean;
  readonly problem?: string;
}

export interface OpsServerOptions {
  readonly host: string;
  readonly port: number;
  readonly metrics: Registry;
  readonly readiness: () => Readiness;
}

/**
 * The operations port: `/healthz`, `/readyz`, `/metrics`. Never public (api-contract, part 2).
 * Resolves when it listens; `close` it when the process ends.
 */
export function startOpsServer(options: OpsServerOptions): Promise<Server> {
  const server = createServer((request, response) => {
    answer(options, request.url ?? "/").then(
      ({ status, type, body }) => response.writeHead(status, { "content-type": type }).end(body),
      (error: unknown) => response.writeHead(500, { "content-type": "text/plain" }).end(`${String(error)}\n`),
    );
  });
  server.requestTimeout = 10_000;
  return listen(server, options.host, options.port);
}

async function answer(options: OpsServerOptions, url: string) {
  switch (url.split("?", 1)[0]) {
    case "/healthz":
      return text(200, "ok");
    case "/readyz": {
      const { ready, problem } = options.readiness();
      return ready ? text(200, "ok") : text(503, problem ?? "not ready");
    }
    case "/metrics":
      return { status: 200, type: options.metrics.contentType, body: await options.metrics.metrics() };
    default:
      return text(404, "this port has /healthz, /readyz and /metrics");
  }
}

function text(status: number, body: string) {
  return { status, type: "text/plain; charset=utf-8", body: `${body}\n` };
}

/** Resolves when the server listens, rejects with a sentence when it cannot. */
export function listen<S extends Server>(server: S, host: string, port: number): Promise<S> {
  return new Promise((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => {
      const where = `${host} port ${port}`;
      const why =
        cause.code === "EADDRINUSE"
          ? `${where} is in use by another program: stop it or choose another port`
          : `cannot listen on ${where}: ${cause.message}`;
      reject(new Error(why, { cause }));
    });
    server.listen(port, host, () => resolve(server));
  });
}

/** Where a server really listens: port 0 lets the system choose. */
export function urlOf(server: Server, scheme: "http" | "https" = "http"): string {
  const address = server.address();
  if (typeof address !== "object" || address === null) return "";
  const host = address.family === "IPv6" ? `[${address.address}]` : address.address;
  return `${scheme}://${host}:${address.port}`;
}
