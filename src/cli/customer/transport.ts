import { openDispatcher } from "../../kube/dispatcher.ts";
import { type Environment, proxyFromEnvironment } from "../../kube/proxy.ts";
import type { Access } from "./access.ts";
import { noResponse } from "./errors.ts";

export interface ApiRequest {
  readonly method: "GET" | "PUT" | "PATCH" | "DELETE";
  /** Begins with /v1. */
  readonly path: string;
  readonly body?: object;
}

export interface RawResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** Sends one request, once. */
export interface Transport {
  /** @throws NoResponse, or the reason of the signal once that is aborted */
  send(request: ApiRequest, signal?: AbortSignal): Promise<RawResponse>;
  close(): Promise<void>;
}

const CONNECT_MS = 5000;
/** Deadline of a request with its response. The API waits up to 30 s for a request to arrive. */
const DEADLINE_MS = 35_000;
/** Maximum size of a response. A list of a hundred keys is about 50 KB. */
const MOST_BYTES = 4 * 1024 * 1024;

/** Redirects are not followed, so that the key is sent to no other address. */
export function openTransport(
  { url, authorization, ca }: Access,
  { env = {}, deadlineMs = DEADLINE_MS }: { readonly env?: Environment; readonly deadlineMs?: number } = {},
): Transport {
  const { origin, pathname } = new URL(url);
  const base = pathname.replace(/\/$/, "");
  const options = {
    connections: 1,
    maxResponseSize: MOST_BYTES,
    connect: { timeout: CONNECT_MS, ...(ca === undefined ? {} : { ca }) },
  };
  let proxyInUse: URL | undefined;
  const pool = openDispatcher(origin, proxyFromEnvironment(env, new URL(url)), options, (proxy) => {
    proxyInUse = proxy;
  });
  return {
    async send(request, signal) {
      const { method, path, body } = request;
      const deadline = AbortSignal.timeout(deadlineMs);
      try {
        const response = await pool.request({
          origin,
          method,
          path: `${base}${path}`,
          headers: {
            accept: "application/json",
            authorization,
            "user-agent": "pipe-scaling",
            ...(body === undefined ? {} : { "content-type": "application/json; charset=utf-8" }),
          },
          body: body === undefined ? null : JSON.stringify(body),
          signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
        });
        const text = await response.body.text();
        return { status: response.statusCode, headers: single(response.headers), text };
      } catch (cause) {
        signal?.throwIfAborted();
        throw noResponse(url, request, cause, proxyInUse);
      }
    },
    close: () => pool.destroy(),
  };
}

function single(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}
