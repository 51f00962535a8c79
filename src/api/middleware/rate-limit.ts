import type { RequestHandler } from "express";
import type { Clock } from "../../runtime/clock.ts";
import type { KeyUsageBuffer } from "../cluster/key-usage/buffer.ts";
import { chargeKey, type RateLimits } from "./rate-limit/limits.ts";

export interface RateLimitOptions {
  readonly limits: RateLimits;
  readonly clock: Pick<Clock, "now" | "monotonic">;
  readonly keyUsage: Pick<KeyUsageBuffer, "note">;
}

/** Charges each request to its key, and records the use of the key. */
export function rateLimit({ limits, clock, keyUsage }: RateLimitOptions): RequestHandler {
  return ({ context }, _response, next) => {
    const { key } = context;
    if (!key) throw new Error("the request is not authenticated");
    // A request over the limit also counts as a use, because `usedAt` shows that someone still needs the key. A request
    // from a forbidden address does not, because a thief must not make a key look used.
    keyUsage.note(key.apiKey, clock.now());
    next(chargeKey(context, key.view.metadata.name, limits, clock.monotonic()));
  };
}
