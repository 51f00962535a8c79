import { randomBytes, timingSafeEqual } from "node:crypto";
import { apiKeySecretName, sha256 } from "../../records/api-key.ts";
import type { KeyView } from "../cluster/views.ts";

/** A hash of no secret, used for an unknown key, and as the second hash of a key that has only one. */
const NO_HASH = randomBytes(32).toString("hex");

/**
 * Returns the key whose ID and secret are in an Authorization header. The caller must check state, expiry and
 * addresses.
 *
 * Every header that is HTTP Basic costs the same two hashes and two comparisons, whether or not its key exists, is
 * disabled or has another secret, so that the time of a 401 reveals nothing.
 *
 * @param find the cached key by the name of its Secret
 */
export function verifyCredentials(
  header: string,
  find: (secretName: string) => KeyView | undefined,
): KeyView | undefined {
  const credentials = parseBasic(header);
  if (!credentials) return undefined;
  const key = find(apiKeySecretName(credentials.keyId));
  const [first = NO_HASH, second = NO_HASH] = key?.parsed.ok ? key.parsed.value.secretHashes : [];
  const presented = sha256(credentials.keySecret);
  // Always makes both comparisons, so that the time does not reveal which of two secrets matches.
  const matchesFirst = isEqual(presented, first);
  const matchesSecond = isEqual(presented, second);
  return matchesFirst || matchesSecond ? key : undefined;
}

/** Compares two hashes in a time that does not depend on them. */
function isEqual(a: string, b: string): boolean {
  return timingSafeEqual(Buffer.from(a), Buffer.from(b));
}

interface Credentials {
  readonly keyId: string;
  readonly keySecret: string;
}

/** The scheme in any case, then spaces, then standard base64, not base64url. */
const HEADER = /^basic +([A-Za-z0-9+/]+={0,2})$/i;

/**
 * The key ID is printable ASCII without spaces; a colon ends it. The secret may have colons, but no control characters,
 * and no replacement character, which invalid UTF-8 becomes.
 */
const CREDENTIALS = /^([\x21-\x39\x3b-\x7e]+):([^\p{Cc}\ufffd]+)$/u;

/** The credentials of an Authorization header, or `undefined` if it is not exactly HTTP Basic (RFC 7617). */
export function parseBasic(header: string): Credentials | undefined {
  const [, encoded = ""] = HEADER.exec(header) ?? [];
  const [, keyId, keySecret] = CREDENTIALS.exec(Buffer.from(encoded, "base64").toString()) ?? [];
  return keyId === undefined || keySecret === undefined ? undefined : { keyId, keySecret };
}
