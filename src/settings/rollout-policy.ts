import type * as z from "zod";
import { option } from "./option.ts";
import { durationMs, integer } from "./values.ts";

export const rolloutPolicySettings = {
  rolloutTimeoutMs: option(durationMs("1s", "24h"), {
    placeholder: "duration",
    description: "how long a pipe may take to come up with its new size before it is rolled back",
    default: "15m",
  }),
  maxConcurrentRollouts: option(integer(1, 10_000), {
    placeholder: "number",
    description: "how many pipes may be on their way to a new size at once, over all services",
    default: "50",
  }),
};

/** What the platform team decides about rollouts. */
export type RolloutPolicy = z.output<z.ZodObject<typeof rolloutPolicySettings>>;
