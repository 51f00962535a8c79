import { once } from "node:events";
import { type IncomingMessage, type OutgoingHttpHeaders, request } from "node:http";
import { request as requestTls } from "node:https";
import { connect, type Socket, type TcpNetConnectOpts } from "node:net";
import { connect as connectTls } from "node:tls";

/** A response with its text and its parsed body. */
export interface ApiResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  readonly body: unknown;
}

export interface ApiRequest {
  readonly method?: string;
  readonly path: string;
  readonly authorization?: string | undefined;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Buffer | undefined;
  /** Send the body in chunks, without a Content-Length. */
  readonly chunked?: boolean;
}

export type Client = (send: ApiRequest) => Promise<ApiResponse>;

/** Sends requests with node:http, which does not rewrite paths or add headers, unlike fetch. */
export function clientOf(baseUrl: string): Client {
  return ({ method = "GET", path, authorization, headers = {}, body, chunked = false }) =>
    new Promise((resolve, reject) => {
      const base = new URL(baseUrl);
      const sized = body === undefined || chunked ? {} : { "Content-Length": Buffer.byteLength(body) };
      const call = (base.protocol === "https:" ? requestTls : request)({
        host: base.hostname,
        port: base.port,
        // Tests of TLS itself verify certificates (tls.test.ts).
        rejectUnauthorized: false,
        method,
        path,
        agent: false,
        headers: {
          ...(authorization === undefined ? {} : { Authorization: authorization }),
          ...sized,
          ...headers,
        },
      });
      call.once("error", reject);
      call.once("response", (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.once("error", reject);
        response.once("end", () => {
          const text = Buffer.concat(chunks).toString();
          const single = Object.entries(response.headers).map(([name, value]) => [name, String(value)]);
          resolve({
            status: response.statusCode ?? 0,
            headers: Object.fromEntries(single),
            text,
            body: isJson(response) && text !== "" ? JSON.parse(text) : undefined,
          });
        });
      });
      if (chunked && body !== undefined) call.write(body);
      call.end(chunked ? undefined : body);
    });
}

function isJson({ headers }: IncomingMessage): boolean {
  return headers["content-type"] === "application/json";
}

/** A raw connection, on which a test sends bytes. */
export interface RawConnection {
  write(bytes: string): void;
  text(): string;
  /** Resolves when this text has arrived. */
  received(text: string): Promise<void>;
  /** Resolves when the server has closed the connection. */
  readonly closed: Promise<unknown>;
}

/** A connection, with TLS if the URL says so; `opened` resolves when bytes can be sent. */
export function connectTo(
  baseUrl: string,
  options: Pick<TcpNetConnectOpts, "localAddress" | "signal"> = {},
): { readonly socket: Socket; readonly opened: Promise<unknown> } {
  const { protocol, hostname, port } = new URL(baseUrl);
  const where = { ...options, host: hostname, port: Number(port) };
  if (protocol !== "https:") {
    const socket = connect(where);
    return { socket, opened: once(socket, "connect") };
  }
  const socket = connectTls({ ...where, rejectUnauthorized: false });
  return { socket, opened: once(socket, "secureConnect") };
}

export async function openRaw(baseUrl: string): Promise<RawConnection> {
  const { socket, opened } = connectTo(baseUrl);
  await opened;
  socket.setTimeout(20_000, () => socket.destroy(new Error("the server sent nothing for 20 s")));
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  const text = () => Buffer.concat(chunks).toString();
  const closed = once(socket, "close");
  return {
    write: (bytes) => void socket.write(bytes),
    text,
    async received(expected) {
      while (!text().includes(expected)) await once(socket, "data");
    },
    closed,
  };
}

/** Sends raw bytes and reads until the server closes the connection. */
export async function exchangeRaw(baseUrl: string, bytes: string): Promise<string> {
  const connection = await openRaw(baseUrl);
  connection.write(bytes);
  await connection.closed;
  return connection.text();
}

/** Parses a raw response. */
export function parseRaw(text: string): ApiResponse {
  const [head = "", body = ""] = text.split("\r\n\r\n", 2);
  const [statusLine = "", ...lines] = head.split("\r\n");
  return {
    status: Number(statusLine.split(" ")[1]),
    headers: Object.fromEntries(
      lines.map((line) => [
        line.slice(0, line.indexOf(":")).toLowerCase(),
        line.slice(line.indexOf(":") + 2),
      ]),
    ),
    text: body,
    body: body === "" ? undefined : JSON.parse(body),
  };
}
