import { parse } from "basic-auth";

export interface Credentials {
  readonly keyId: string;
  readonly keySecret: string;
}

/** The scheme in any case, then spaces, then standard base64, not base64url. */
const HEADER = /^basic +[A-Za-z0-9+/]+={0,2}$/i;

/** Printable ASCII without the colon, which ends it. */
const KEY_ID = /^[\x21-\x39\x3b-\x7e]+$/;

/** Any character except control characters and the replacement character of invalid UTF-8. May have colons. */
const KEY_SECRET = /^[^\p{Cc}\ufffd]+$/u;

/**
 * The credentials of an Authorization header, or `undefined` if it is not exactly HTTP Basic (RFC 7617).
 * basic-auth decodes them. It accepts NUL, line breaks and invalid UTF-8, so the grammar here is stricter.
 */
export function parseBasic(header: string): Credentials | undefined {
  if (!HEADER.test(header)) return undefined;
  const decoded = parse(header);
  if (!decoded || !KEY_ID.test(decoded.name) || !KEY_SECRET.test(decoded.pass)) return undefined;
  return { keyId: decoded.name, keySecret: decoded.pass };
}
