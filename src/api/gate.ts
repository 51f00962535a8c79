import type { ApiKey } from "../records/api-key.ts";
import type { Clock } from "../runtime/clock.ts";
import { Authenticator } from "./authenticator.ts";
import type { CachedKey } from "./cached-objects.ts";
import type { Caches } from "./caches.ts";
import type { Exchange } from "./exchange.ts";
import { timesSent } from "./http-syntax.ts";
import { type Limits, tooMany } from "./limits.ts";
import { forbidden, type Problem, unauthenticated } from "./problem.ts";
import type { Method } from "./routes.ts";
import { sourceOf } from "./source.ts";

export interface GateOptions {
  readonly caches: Pick<Caches, "key" | "requireFreshRecords" | "usageNotes">;
  readonly clock: Clock;
  readonly realm: string;
  /** Without them nobody is limited. */
  readonly limits?: Limits | undefined;
}

/** Who comes in. */
export class Gate {
  readonly #caches: GateOptions["caches"];
  readonly #clock: Clock;
  readonly #challenge: string;
  readonly #authenticator: Authenticator;
  readonly #limits: Limits | undefined;

  constructor({ caches, clock, realm, limits }: GateOptions) {
    this.#caches = caches;
    this.#clock = clock;
    this.#challenge = `Basic realm="${realm.replace(/["\\]/g, "\\$&")}", charset="UTF-8"`;
    this.#authenticator = new Authenticator({ get: (secretName) => caches.key(secretName) });
    this.#limits = limits;
  }

  /**
   * The key that a request comes with, if it may be used now, from there, and once more. The exchange knows
   * it from then on, so that the log does.
   *
   * @throws Problem 401, 403, 429; 503 if the keys are not known well enough to say
   */
  admit(exchange: Exchange): ApiKey {
    const { request } = exchange;
    const header = request.headers.authorization;
    // No credentials are not a failed guess: many clients send them only when they are asked to, and would be
    // shut out by their neighbours' guesses if they were not always asked.
    if (header === undefined) throw unauthenticated(this.#challenge);
    if (timesSent(request, "authorization") !== 1) throw this.#failed(exchange);
    this.#caches.requireFreshRecords();
    const known = this.#authenticator.identify(header);
    const key = known && this.#usable(known);
    if (!key) throw this.#failed(exchange);
    exchange.key = key;
    if (!known.access.allows(exchange.client)) {
      throw forbidden("This key may not be used from this address.");
    }
    // Whatever the answer will be, a 429 too: whoever reads `usedAt` wants to know whether anybody would miss
    // the key. From an address that is not allowed nobody would, and a thief must not make it look alive.
    this.#caches.usageNotes.note(key, this.#clock.now());
    this.#charge(exchange, known);
    return key;
  }

  /**
   * Only after the credentials have been looked at, so that valid ones always pass, and whatever was wrong
   * with the others has cost the same.
   */
  #failed(exchange: Exchange): Problem {
    if (!this.#limits) return unauthenticated(this.#challenge);
    const now = this.#clock.monotonic();
    const bucket = this.#limits.ofSource(sourceOf(exchange.client), now);
    exchange.bucket = bucket;
    return !bucket || bucket.take(now) ? unauthenticated(this.#challenge) : tooMany(bucket, now);
  }

  /** By the Secret's name, which stays when the Secret is changed, and no other has. */
  #charge(exchange: Exchange, { metadata }: CachedKey): void {
    const now = this.#clock.monotonic();
    const bucket = this.#limits?.ofKey(metadata.name, now);
    exchange.bucket = bucket;
    if (bucket && !bucket.take(now)) throw tooMany(bucket, now);
  }

  #usable({ parsed }: CachedKey): ApiKey | undefined {
    if (!parsed.ok || parsed.value.state !== "enabled") return undefined;
    const { expireAt } = parsed.value;
    return expireAt !== undefined && expireAt.getTime() <= this.#clock.now() ? undefined : parsed.value;
  }
}

/**
 * `admin` may do everything, `developer` may read, any other role nothing (api-contract, part 2).
 *
 * @throws Problem 403
 */
export function requireRole({ roles }: ApiKey, method: Method): void {
  if (roles.includes("admin")) return;
  if (method === "GET" && roles.includes("developer")) return;
  throw forbidden("The roles of this key do not allow this operation.");
}
