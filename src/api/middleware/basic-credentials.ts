export interface Credentials {
  readonly keyId: string;
  readonly keySecret: string;
}

/** The scheme in any case, then spaces, then standard base64, not base64url. */
const HEADER = /^basic +([A-Za-z0-9+/]+={0,2})$/i;

/**
 * The key ID is printable ASCII without the colon, which ends it. The secret may have colons, but no control characters,
 * and no replacement character, which invalid UTF-8 becomes.
 */
const CREDENTIALS = /^([\x21-\x39\x3b-\x7e]+):([^\p{Cc}\ufffd]+)$/u;

/** The credentials of an Authorization header, or `undefined` if it is not exactly HTTP Basic (RFC 7617). */
export function parseBasic(header: string): Credentials | undefined {
  const [, encoded = ""] = HEADER.exec(header) ?? [];
  const [, keyId, keySecret] = CREDENTIALS.exec(Buffer.from(encoded, "base64").toString()) ?? [];
  return keyId === undefined || keySecret === undefined ? undefined : { keyId, keySecret };
}
