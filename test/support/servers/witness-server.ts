import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { TLSSocket } from "node:tls";
import type { CertificatePair } from "@pipe-scaling/local-cluster/certificate";
import { onTestFinished } from "vitest";

/** The part of a request that depends on the kubeconfig. */
export interface WitnessedRequest {
  readonly path: string;
  /** The values of `Authorization` and `Impersonate-*`. */
  readonly headers: Readonly<Record<string, readonly string[]>>;
  /** Undefined without TLS. */
  readonly tls: { readonly serverName: string; readonly client: string } | undefined;
}

export interface WitnessServer {
  readonly url: string;
  readonly requests: WitnessedRequest[];
}

/**
 * A server that remembers who called it, until the test ends.
 *
 * @param tls without it, the server has no TLS; with it, the server accepts any client certificate
 * @param status of the response to each request, by its number from 1
 */
export async function startWitnessServer(
  tls: CertificatePair | undefined,
  status: (request: number) => number = () => 200,
): Promise<WitnessServer> {
  const requests: WitnessedRequest[] = [];
  const listener: RequestListener = ({ url = "", headersDistinct, socket }, response) => {
    const headers = Object.entries(headersDistinct).filter(([name]) =>
      /^(authorization|impersonate-)/.test(name),
    );
    requests.push({
      path: url,
      headers: Object.fromEntries(headers.map(([name, values = []]) => [name, values])),
      tls: socket instanceof TLSSocket ? tlsOf(socket) : undefined,
    });
    response.writeHead(status(requests.length), { "content-type": "application/json" }).end("{}");
  };
  const server = tls
    ? createTlsServer({ ...tls, requestCert: true, rejectUnauthorized: false }, listener)
    : createServer(listener);
  server.listen(0, "127.0.0.1");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" ? address?.port : undefined;
  return { url: `${tls ? "https" : "http"}://127.0.0.1:${port}`, requests };
}

function tlsOf(socket: TLSSocket): WitnessedRequest["tls"] {
  const { servername = false } = socket;
  const { CN = "none" } = socket.getPeerCertificate().subject ?? {};
  return { serverName: servername || "none", client: String(CN) };
}
