import { CliError } from "../failure.ts";
import type { Method } from "./request.ts";

/** The API was not reached, or has said nothing. Of a write that was sent the outcome is unknown. */
export class NoAnswer extends CliError {}

interface Place {
  readonly origin: string;
  readonly host: string;
  readonly isTls: boolean;
}

interface Cause {
  readonly codes: RegExp;
  /** Whether the request may have come to the API all the same. */
  readonly mayHaveArrived?: true;
  readonly sentence: (at: Place) => string;
}

/** Codes of Node, OpenSSL and undici, and what they mean to somebody at a keyboard. The first that fits counts. */
const CAUSES: readonly Cause[] = [
  {
    codes: /^ECONNREFUSED$/,
    sentence: ({ origin }) =>
      `Nothing listens at ${origin}: see that the address is right, and that the API runs.`,
  },
  {
    codes: /^(ENOTFOUND|EAI_AGAIN)$/,
    sentence: ({ host }) =>
      `The name ${host} is not known: see that the API's address is right, and that this machine has a network.`,
  },
  {
    codes: /^(EHOSTUNREACH|ENETUNREACH)$/,
    mayHaveArrived: true,
    sentence: ({ host }) =>
      `There is no way to ${host} from here: see that the API's address is right, and the network.`,
  },
  {
    codes: /^CERT_HAS_EXPIRED$/,
    sentence: ({ origin }) =>
      `The certificate of ${origin} has expired, or the clock of this machine is wrong: tell who operates the API.`,
  },
  {
    codes: /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    sentence: ({ origin, host }) =>
      `The certificate of ${origin} is not one for ${host}: see that the API's address has the name that it is to have.`,
  },
  {
    codes: /(CERT|SIGNATURE)/,
    sentence: ({ origin }) =>
      `The certificate of ${origin} is not signed by an authority that is trusted here: give the authority's own with --ca-file (or PIPE_SCALING_CA_FILE), if that is to be trusted.`,
  },
  {
    codes: /^(EPROTO|ERR_SSL_.*)$/,
    sentence: ({ origin }) =>
      `What listens at ${origin} does not speak TLS as this program does: see that the address is right, and whether it begins with http://.`,
  },
  {
    codes: /^(HPE_.*|HTTPParserError)$/,
    sentence: ({ origin }) =>
      `What listens at ${origin} does not speak HTTP: see that the address is right, and whether it begins with https://.`,
  },
  {
    codes: /^UND_ERR_RES_EXCEEDED_MAX_SIZE$/,
    mayHaveArrived: true,
    sentence: ({ origin }) =>
      `What ${origin} answers is longer than any answer of this API: see that the address is right.`,
  },
  {
    codes: /^UND_ERR_CONNECT_TIMEOUT$/,
    sentence: ({ origin }) =>
      `There was no connection to ${origin} in time: see that the address is right, and the network.`,
  },
  {
    codes: /^(UND_ERR_(HEADERS|BODY)_TIMEOUT|TimeoutError|ETIMEDOUT)$/,
    mayHaveArrived: true,
    sentence: ({ origin }) => `${origin} has not answered in time.`,
  },
  {
    codes: /^(UND_ERR_SOCKET|ECONNRESET|EPIPE)$/,
    mayHaveArrived: true,
    sentence: ({ origin, isTls }) =>
      `${origin} has closed the connection without an answer${isTls ? "" : ": see whether its address begins with https://"}.`,
  },
];

/** For people: why there is no answer, what to do, and what has become of a write. */
export function noAnswerSentence(url: string, method: Method, error: unknown): string {
  const { origin, hostname, protocol } = new URL(url);
  const place = { origin, host: hostname, isTls: protocol === "https:" };
  const codes = codesOf(error);
  const known = CAUSES.find((cause) => codes.some((code) => cause.codes.test(code)));
  const why = known?.sentence(place) ?? `There is no answer from ${origin}: ${messageOf(error)}.`;
  const mayHaveArrived = known === undefined || known.mayHaveArrived === true;
  return method !== "GET" && mayHaveArrived ? `${why} ${DOUBT}` : why;
}

/** Codes of what comes before a request is sent. With a proxy between, names and addresses are the proxy's matter. */
const NO_CONNECTION =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|UND_ERR_PRX_.*)$/;

/** What undici says of a proxy's answer to CONNECT, which no code tells apart. */
const REFUSED_TUNNEL = /^Proxy response \((\d+)\)/;

/** For people: that the proxy on the way was not reached, or would not go on; `undefined` for any other cause. */
export function noTunnelSentence(url: string, proxy: URL, error: unknown): string | undefined {
  const { origin, hostname } = new URL(url);
  const named = `The proxy ${proxy.host}, which HTTPS_PROXY names,`;
  const [, status] = REFUSED_TUNNEL.exec(messageOf(error)) ?? [];
  if (status === "407")
    return `${named} wants other credentials: HTTPS_PROXY has them as http://user:password@host.`;
  if (status) return `${named} did not let through to ${origin} (${status}): see that the address is right.`;
  if (!codesOf(error).some((code) => NO_CONNECTION.test(code))) return undefined;
  return `${named} cannot be reached: see that it is right, or name ${hostname} in NO_PROXY.`;
}

/** Of a write (api-contract: a 5xx is safe to repeat, and so is what was never answered). */
export const DOUBT = "Whether the change was made is not known; it is safe to ask for it again.";

/** Of an error and of what caused it; of several at once, as from a name with two addresses, all. */
function codesOf(error: unknown): string[] {
  if (!(error instanceof Error)) return [];
  const own = "code" in error && typeof error.code === "string" ? [error.code] : [];
  const others = error instanceof AggregateError ? error.errors : [];
  return [...own, error.name, ...[error.cause, ...others].flatMap(codesOf)];
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}
