import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { CertificatePair } from "@pipe-scaling/local-cluster/certificate";
import { onTestFinished } from "vitest";

export const REQUEST_ID = "0b7f6c1e-3a52-4d0a-9c1b-5f0e7a7d2c11";

export interface FakeResponse {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON, unless it is a string. */
  readonly body: unknown;
}

export interface ReceivedRequest {
  readonly method: string;
  readonly path: string;
  readonly authorization: string | undefined;
  readonly contentType: string | undefined;
  readonly body: unknown;
}

export interface FakeHttpServer {
  readonly url: string;
  readonly requests: readonly ReceivedRequest[];
}

/** The response of a successful operation. */
export function done(result: unknown, headers: Record<string, string> = {}): FakeResponse {
  return { headers, body: { requestId: REQUEST_ID, status: 200, result } };
}

/** The response of a rejected operation. */
export function refused(status: number, error: string, headers: Record<string, string> = {}): FakeResponse {
  return { status, headers: { "X-Request-Id": REQUEST_ID, ...headers }, body: { error, status } };
}

/** A server with the given responses, until the end of the test. */
export async function startFakeHttpServer(
  respond: (request: ReceivedRequest, at: number) => FakeResponse | Promise<FakeResponse>,
  tls?: CertificatePair,
): Promise<FakeHttpServer> {
  const requests: ReceivedRequest[] = [];
  const listener: RequestListener = async (request, response) => {
    const asked = await read(request);
    requests.push(asked);
    const { status = 200, headers = {}, body } = await respond(asked, requests.length);
    const isText = typeof body === "string";
    response.writeHead(status, { "Content-Type": isText ? "text/html" : "application/json", ...headers });
    response.end(isText ? body : JSON.stringify(body));
  };
  const server = tls ? createTlsServer({ ...tls }, listener) : createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const address: AddressInfo | string | null = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return { url: `${tls ? "https" : "http"}://127.0.0.1:${address.port}`, requests };
}

async function read(request: IncomingMessage): Promise<ReceivedRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(Buffer.from(chunk));
  const text = Buffer.concat(chunks).toString();
  const { method = "", url = "", headers } = request;
  return {
    method,
    path: url,
    authorization: headers.authorization,
    contentType: headers["content-type"],
    body: text === "" ? undefined : JSON.parse(text),
  };
}
