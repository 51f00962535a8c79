import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import { apiKeySecretName, sha256 } from "../records/api-key.ts";
import type { CachedKey } from "./cached-objects.ts";
import { parseBasic } from "./credentials.ts";

/** Headers that are remembered as verified: more than the keys that are in use at a time. */
const REMEMBERED = 4096;

/** What no secret hashes to: in the place of a key that is unknown, or of a second hash that it has not. */
const NOBODY = randomBytes(32);

export interface KeySource {
  /** The cached Secret of that name, as it is now. */
  get(secretName: string): CachedKey | undefined;
}

/**
 * Tells whose credentials a header carries; whether they may be used (state, expiry, address) is asked
 * afterwards, on every request.
 *
 * Verified headers are remembered by their SHA-256, with the very version of the Secret that verified them:
 * a Secret that has changed since, or is gone, is verified anew. Only a success is remembered, so a wrong
 * secret always costs the same: two hashes and two comparisons, whether its key exists or not.
 */
export class Authenticator {
  readonly #keys: KeySource;
  readonly #verified = new Map<string, { readonly secretName: string; readonly key: CachedKey }>();

  constructor(keys: KeySource) {
    this.#keys = keys;
  }

  /** How many headers are remembered. */
  get remembered(): number {
    return this.#verified.size;
  }

  identify(header: string): CachedKey | undefined {
    const fingerprint = hash("sha256", header, "base64");
    const known = this.#verified.get(fingerprint);
    if (known) {
      if (this.#keys.get(known.secretName) === known.key) return known.key;
      this.#verified.delete(fingerprint);
    }
    const verified = this.#verify(header);
    if (verified) this.#remember(fingerprint, verified);
    return verified?.key;
  }

  #verify(header: string): { secretName: string; key: CachedKey } | undefined {
    const credentials = parseBasic(header);
    if (!credentials) return undefined;
    const secretName = apiKeySecretName(credentials.keyId);
    const key = this.#keys.get(secretName);
    const [first = NOBODY, second = NOBODY] = key?.parsed.ok ? key.parsed.value.secretHashes : [];
    const presented = sha256(credentials.keySecret);
    // Both, always: which of two secrets is being rotated out must not show in the time either.
    const matches = [timingSafeEqual(presented, first), timingSafeEqual(presented, second)];
    return key && matches.includes(true) ? { secretName, key } : undefined;
  }

  #remember(fingerprint: string, verified: { secretName: string; key: CachedKey }): void {
    if (this.#verified.size >= REMEMBERED) {
      const oldest = this.#verified.keys().next();
      if (!oldest.done) this.#verified.delete(oldest.value);
    }
    this.#verified.set(fingerprint, verified);
  }
}
