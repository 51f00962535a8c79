import type { ApiKey } from "../records/api-key.ts";
import type { Clock } from "../runtime/clock.ts";
import { Authenticator } from "./authenticator.ts";
import type { CachedKey } from "./cached-objects.ts";
import type { Caches } from "./caches.ts";
import type { Exchange } from "./exchange.ts";
import { timesSent } from "./http-syntax.ts";
import { forbidden, unauthenticated } from "./problem.ts";
import type { Method } from "./routes.ts";

export interface GateOptions {
  readonly caches: Pick<Caches, "key" | "requireFreshRecords">;
  readonly clock: Clock;
  readonly realm: string;
}

/** Who comes in. */
export class Gate {
  readonly #caches: GateOptions["caches"];
  readonly #clock: Clock;
  readonly #challenge: string;
  readonly #authenticator: Authenticator;

  constructor({ caches, clock, realm }: GateOptions) {
    this.#caches = caches;
    this.#clock = clock;
    this.#challenge = `Basic realm="${realm.replace(/["\\]/g, "\\$&")}", charset="UTF-8"`;
    this.#authenticator = new Authenticator({ get: (secretName) => caches.key(secretName) });
  }

  /**
   * The key that a request comes with, if it may be used now and from there. The exchange knows it from then
   * on, so that the log does.
   *
   * @throws Problem 401, 403; 503 if the keys are not known well enough to say
   */
  admit(exchange: Exchange): ApiKey {
    const { request } = exchange;
    const header = request.headers.authorization;
    if (header === undefined || timesSent(request, "authorization") !== 1) {
      throw unauthenticated(this.#challenge);
    }
    this.#caches.requireFreshRecords();
    const known = this.#authenticator.identify(header);
    const key = known && this.#usable(known);
    if (!key) throw unauthenticated(this.#challenge);
    exchange.key = key;
    if (!known.access.allows(request.socket.remoteAddress)) {
      throw forbidden("This key may not be used from this address.");
    }
    return key;
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
