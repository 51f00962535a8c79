import * as z from "zod";
import { ERRORS } from "../../api/error-table.ts";
import { messageOf } from "../../kube/errors.ts";
import { CliError } from "../failure.ts";
import { printable } from "../view/text.ts";
import type { Access } from "./access.ts";
import type { ApiRequest, RawResponse } from "./transport.ts";

/** The API could not be reached, or did not respond. The outcome of a write that was sent is unknown. */
export class NoResponse extends CliError {}

/** The API responded with an error. */
export class ErrorResponse extends CliError {
  readonly status: number;
  /** Delay before `ApiClient.request` sends the request again; `undefined` if it does not. */
  readonly retryAfterMs: number | undefined;
  /** `undefined` if the response has none, such as that of a gateway. */
  readonly requestId: string | undefined;
  /** A write may have succeeded anyway. */
  readonly isOutcomeUnknown: boolean;
  /** The object of a deletion does not exist. */
  readonly isGone: boolean;

  constructor(
    message: string,
    status: number,
    retryAfterMs: number | undefined,
    {
      requestId,
      isOutcomeUnknown = false,
      isGone = false,
    }: { requestId?: string | undefined; isOutcomeUnknown?: boolean; isGone?: boolean } = {},
  ) {
    super(message);
    this.status = status;
    this.retryAfterMs = retryAfterMs;
    this.requestId = requestId;
    this.isOutcomeUnknown = isOutcomeUnknown;
    this.isGone = isGone;
  }
}

/** Another 404, such as that of a mistyped ID, says nothing about the deletion. */
const GONE = [ERRORS.NoSuchMember];

/**
 * Returns the sentence after a 5xx, or without a response. Every write is safe to repeat, except the end of a boost: it
 * does not name the boost, so it could end a newer one.
 */
function unknownOutcome(request: Pick<ApiRequest, "method" | "path">): string {
  return endsBoost(request)
    ? "The boost may or may not have ended. Before you repeat the command, run it without --end to see the boost in effect, because it would also end one that someone else has started since."
    : "The change may or may not have been made. It is safe to repeat the command.";
}

function endsBoost({ method, path }: Pick<ApiRequest, "method" | "path">): boolean {
  return method === "DELETE" && path.endsWith("/boost");
}

const NOT_CONFIRMED = [ERRORS.NotConfirmed, ERRORS.EndNotConfirmed];

/** Codes of Node, OpenSSL and undici for a certificate that is not accepted. */
const UNTRUSTED = /CERT|SIGNATURE/;

/** Code of OpenSSL if the server responds without TLS, such as with HTTP. Its message only names source lines. */
const NOT_TLS = /^ERR_SSL_WRONG_VERSION_NUMBER$/;

/**
 * The request has not reached the API, unlike with an error of the HTTP parser, which reads the response. undici has no
 * code for a proxy that rejects a connection.
 */
const NOT_SENT =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|UND_ERR_PRX_.*|EPROTO|ERR_SSL_.*)$|CERT|SIGNATURE|^Proxy response/;

/** @param proxy the request went through it */
export function noResponse(
  url: string,
  request: ApiRequest,
  cause: unknown,
  proxy: URL | undefined,
): NoResponse {
  const { origin, hostname } = new URL(url);
  const message = printable(messageOf(cause)).trim();
  const has = (pattern: RegExp) => [message, ...codesOf(cause)].some((text) => pattern.test(text));
  const reason = has(NOT_TLS) ? "the server there does not use HTTPS" : message;
  const through = proxy ? ` through the proxy ${proxy.host} of HTTPS_PROXY` : "";
  const address = proxy
    ? `Check HTTPS_PROXY, or add ${hostname} to NO_PROXY.`
    : "Check the address and its port, whether it begins with http:// or https://, and the network.";
  const sentences = [
    `${origin} did not respond${through}: ${reason}.`,
    has(UNTRUSTED)
      ? "Check the address, or specify the certificate of the authority with --ca-file (or PIPE_SCALING_CA_FILE)."
      : address,
    ...(request.method === "GET" || has(NOT_SENT) ? [] : [unknownOutcome(request)]),
  ];
  return new NoResponse(sentences.join(" "), { cause });
}

/** Returns the codes and names of an error and its causes. A host with two addresses fails with an error for each. */
function codesOf(error: unknown): string[] {
  if (!(error instanceof Error)) return [];
  const own = "code" in error && typeof error.code === "string" ? [error.code] : [];
  const others: readonly unknown[] = error instanceof AggregateError ? error.errors : [];
  return [...own, error.name, ...[error.cause, ...others].flatMap(codesOf)];
}

const errorBody = z.object({ error: z.string(), status: z.int() });

/** `ApiClient.request` sends the request again after these. */
const RETRIED = [429, 502, 503, 504];
/** If one of these responses names no time. */
const DEFAULT_RETRY_MS = 5000;

/** A later attempt may succeed. A gateway in front of the API sends these statuses by itself, too, in HTML. */
export function isTemporary(status: number): boolean {
  return status === 429 || status >= 500;
}

/** The error for a response other than 200. */
export function errorOf(response: RawResponse, request: ApiRequest, access: Access): CliError {
  const { method, path } = request;
  const { status, headers } = response;
  const { success, data } = errorBody.safeParse(jsonOf(response.text));
  if (!success && !isTemporary(status)) return notThisApi(response, access);
  const ofGateway = status === 429 ? "gets too many requests" : "is not available";
  const message = success ? printable(data.error) : `${access.url} ${ofGateway}.`;
  const isNotConfirmed = NOT_CONFIRMED.some((each) => message === each.sentence());
  // This message already says what to do next. NotConfirmed, which an older API sends for the end of a boost, does not
  // warn of a newer boost.
  const saysWhatNext =
    (endsBoost(request) ? ERRORS.EndNotConfirmed : ERRORS.NotConfirmed).sentence() === message;
  const id = headers["x-request-id"];
  const sentences = [
    status === 401 ? keyNotAccepted(access) : message,
    ...(message === ERRORS.NoSuchPath.sentence() ? [OTHER_ADDRESS] : hint(status, path, access.flags)),
    ...(status >= 500 && method !== "GET" && !saysWhatNext ? [unknownOutcome(request)] : []),
    `(status ${status}${id === undefined ? "" : `, request ${printable(id)}`})`,
  ];
  // A gateway does not know whether the API made the write; the JSON of some has the same fields. The API itself leaves
  // that open only with a 500 and the 503s in NOT_CONFIRMED; after its other ones, nothing has changed.
  const isOutcomeUnknown = status >= 500 && (!success || status !== 503 || isNotConfirmed);
  const waitMs = isOutcomeUnknown && endsBoost(request) ? undefined : retryAfterMs(status, headers);
  return new ErrorResponse(sentences.join(" "), status, waitMs, {
    requestId: id,
    isOutcomeUnknown,
    isGone: GONE.some((each) => message === each.sentence()),
  });
}

function keyNotAccepted({ url, keySuffix, profile }: Access): string {
  const from = profile === undefined ? "" : ` of the profile ${profile}`;
  const secret =
    profile === undefined ? "in PIPE_SCALING_KEY_SECRET" : `with \`pipe-scaling profile set ${profile}\``;
  return `${url} does not accept the key that ends in ${keySuffix}${from}: it is unknown, disabled or expired, or its secret is wrong. Check the address, ask an admin of the organization for the state of the key (\`pipe-scaling keys\`), or set another secret ${secret}.`;
}

/** Used for NoSuchPath, where an ID is not the cause. An API of another version may word that error differently. */
const OTHER_ADDRESS =
  "Check the address of the API and its base path, and whether the API is older than this program (`pipe-scaling --version`).";

function hint(status: number, path: string, flags: string): string[] {
  if (status === 403) {
    return [
      `The roles and the ipAccessList of the key decide this: \`pipe-scaling keys${flags}\` shows both, unless they forbid that, too.`,
    ];
  }
  if (status !== 404) return [];
  if (path.endsWith("/boost")) {
    return [
      `\`pipe-scaling scaling get SERVICE${flags}\` shows the boost of a service, and \`pipe-scaling services${flags}\` lists the services.`,
    ];
  }
  const what = path.includes("/services/")
    ? `Check the ID: \`pipe-scaling services${flags}\` lists the services, and`
    : "Check the address and the ID:";
  return [`${what} \`pipe-scaling organizations${flags}\` shows the organization of the key.`];
}

function retryAfterMs(status: number, headers: RawResponse["headers"]): number | undefined {
  if (!RETRIED.includes(status)) return undefined;
  const reset = status === 429 ? headers["x-ratelimit-reset"] : undefined;
  return secondsOf(headers["retry-after"] ?? reset) ?? DEFAULT_RETRY_MS;
}

/** Converts whole seconds to milliseconds. The API never sends a date in Retry-After. */
function secondsOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,6}$/.test(text) ? Number(text) * 1000 : undefined;
}

export function notThisApi({ status, headers }: RawResponse, { url }: Access): CliError {
  const { "content-type": type = "no type", location } = headers;
  const where = location === undefined ? "" : `, redirect to ${JSON.stringify(location)}`;
  return new CliError(
    `The server at ${url} is not this API (status ${status}, ${printable(type)}${where}). Specify the address of the API without /v1.`,
  );
}

export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
