import { openDispatcher } from "../../kube/dispatcher.ts";
import { type Environment, proxyFromEnvironment } from "../../kube/proxy.ts";
import type { Access } from "./access.ts";
import { NoAnswer, noAnswerSentence, noTunnelSentence } from "./no-answer.ts";
import type { ApiRequest } from "./request.ts";

/** An answer as it came. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** Sends one request, once. */
export interface Transport {
  /** @throws NoAnswer, or the reason of the signal once that is aborted */
  send(request: ApiRequest, signal?: AbortSignal): Promise<RawAnswer>;
  close(): Promise<void>;
}

const CONNECT_MS = 5000;
/** Until all of an answer is there. The API itself gives a request 30 s. */
const DEADLINE_MS = 35_000;
/** A hundred keys are some 50 KB. */
const MOST_BYTES = 4 * 1024 * 1024;

/** Redirects are not followed: a key is sent to nobody but the address that was given. */
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
    async send({ method, path, body }, signal) {
      const deadline = AbortSignal.timeout(deadlineMs);
      try {
        const answer = await pool.request({
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
        const text = await answer.body.text();
        return { status: answer.statusCode, headers: single(answer.headers), text };
      } catch (cause) {
        signal?.throwIfAborted();
        const refusal = proxyInUse && noTunnelSentence(url, proxyInUse, cause);
        throw new NoAnswer(refusal ?? noAnswerSentence(url, method, cause), { cause });
      }
    },
    close: () => pool.destroy(),
  };
}

function single(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}
