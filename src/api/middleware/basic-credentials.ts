import { parse } from "basic-auth";

export interface Credentials {
  readonly keyId: string;
  readonly keySecret: string;
}

/** Any case, any number of spaces, but nothing else between; base64 and not its look-alikes. */
const HEADER = /^basic +[A-Za-z0-9+/]+={0,2}$/i;

/** Printable ASCII without the colon, which ends it. */
const KEY_ID = /^[\x21-\x39\x3b-\x7e]+$/;

/** Anything but control characters and what stands for bytes that are not UTF-8. May have colons. */
const KEY_SECRET = /^[^\p{Cc}\ufffd]+$/u;

/**
 * The credentials of an Authorization header, or `undefined` if it is not exactly HTTP Basic (RFC 7617).
 * basic-auth decodes; it lets NUL, line ends and broken UTF-8 through, so the grammar here is stricter.
 */
export function parseBasic(header: string): Credentials | undefined {
  if (!HEADER.test(header)) return undefined;
  const decoded = parse(header);
  if (!decoded || !KEY_ID.test(decoded.name) || !KEY_SECRET.test(decoded.pass)) return undefined;
  return { keyId: decoded.name, keySecret: decoded.pass };
}
