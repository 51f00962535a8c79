import * as z from "zod";
import { CliError } from "../failure.ts";
import { printable } from "../view/text.ts";
import { type Access, profileFlag } from "./access.ts";
import { DOUBT } from "./no-answer.ts";
import type { ApiRequest } from "./request.ts";
import type { RawAnswer } from "./transport.ts";

/** The API answered, and it was no. The message is for the person at the keyboard. */
export class Refusal extends CliError {
  readonly status: number;
  /** When the same request may be sent again; absent where that would not help. */
  readonly retryAfterMs: number | undefined;

  constructor(
    message: string,
    { status, retryAfterMs }: { status: number; retryAfterMs: number | undefined },
  ) {
    super(message);
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }
}

/** The response is not from the API, or not from one of this version. */
export class ForeignAnswer extends CliError {}

const envelope = z.object({ error: z.string(), status: z.int() });

/** Gateways in front of the API answer these by themselves, and in HTML. */
const PASSING = [502, 503, 504];
/** Used if a 429, 502, 503 or 504 names no wait. */
const STANDARD_RETRY_MS = 5000;

/** The error for a response other than 200. */
export function refusalOf(answer: RawAnswer, { method, path }: ApiRequest, access: Access): CliError {
  const { status, headers } = answer;
  const read = envelope.safeParse(jsonOf(answer.text));
  const isPassing = PASSING.includes(status);
  if (!read.success && !isPassing) return foreign(answer, access);
  const said = read.success ? printable(read.data.error) : `${access.url} is not available at present.`;
  const id = headers["x-request-id"];
  const sentences = [
    status === 401 ? unknownKey(access) : said,
    ...hints(status, said, path, profileFlag(access)),
    ...(status >= 500 && method !== "GET" ? [DOUBT] : []),
    `(${[`status ${status}`, ...(id === undefined ? [] : [`request ${printable(id)}`])].join(", ")})`,
  ];
  return new Refusal(sentences.join(" "), { status, retryAfterMs: retryAfterMs(status, headers) });
}

function unknownKey({ url, keySuffix, profile }: Access): string {
  const from = profile === undefined ? "" : ` of the profile ${profile}`;
  return `${url} does not accept the key that ends in ${keySuffix}${from}: it is unknown there, its secret is wrong, or it is disabled or has expired. See that the address is right; an admin of the organization sees the state of the key with \`pipe-scaling keys\`, and \`pipe-scaling profile set\` takes another secret.`;
}

/** The API's error text for a path without an operation. */
const NO_SUCH_PATH = "There is nothing at this path.";

function hints(status: number, said: string, path: string, flag: string): string[] {
  if (status === 403) {
    return [
      `The roles of a key decide what it may do, and its ipAccessList from which addresses: \`pipe-scaling keys${flag}\` shows both.`,
    ];
  }
  if (said === NO_SUCH_PATH) {
    return [
      "See that the address is right, without a path that is not the API's, or use the program of its version.",
    ];
  }
  if (status === 404 && path.includes("/services/")) {
    return [
      `See that the id is right: \`pipe-scaling services${flag}\` lists the services of the key's organization, and \`pipe-scaling organizations${flag}\` shows which organization that is.`,
    ];
  }
  if (status === 404) {
    return [
      `See that the id is right, and whose key it is: \`pipe-scaling organizations${flag}\` shows that.`,
    ];
  }
  return [];
}

/** @param headers with their names in lower case */
export function retryAfterMs(status: number, headers: RawAnswer["headers"]): number | undefined {
  if (status !== 429 && !PASSING.includes(status)) return undefined;
  const reset = status === 429 ? headers["x-ratelimit-reset"] : undefined;
  return secondsOf(headers["retry-after"] ?? reset) ?? STANDARD_RETRY_MS;
}

/** In milliseconds. Not a date: the API never sends one. */
export function secondsOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,6}$/.test(text) ? Number(text) * 1000 : undefined;
}

export function foreign({ status, headers }: RawAnswer, { url }: Access): ForeignAnswer {
  const { "content-type": type = "no type", location } = headers;
  const where = location === undefined ? "" : `, to ${JSON.stringify(location)}`;
  return new ForeignAnswer(
    `The server at ${url} is not this API (status ${status}, ${printable(type)}${where}): give the address of the API without /v1.`,
  );
}

export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
