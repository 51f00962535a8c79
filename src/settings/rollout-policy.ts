import * as z from "zod";
import { RESIZE_STRATEGIES } from "../domain/resize-strategy.ts";
import { option, type Values } from "./option.ts";
import { durationMs, integer } from "./values.ts";

export const rolloutPolicySettings = {
  rolloutTimeoutMs: option(durationMs("1s", "24h"), {
    placeholder: "duration",
    description: "time within which a pipe must come up with its new size before it is rolled back",
    default: "15m",
  }),
  maxConcurrentRollouts: option(integer(1, 10_000), {
    placeholder: "number",
    description: "maximum number of concurrent rollouts across all services",
    default: "50",
  }),
  resizeStrategy: option(z.enum(RESIZE_STRATEGIES), {
    placeholder: "strategy",
    description:
      "how pipes are resized if their PipeScaling has no strategy: InPlaceOrRollout changes the running pods and restarts nothing where the cluster can do that; InPlace never replaces pods, so a pipe that cannot be resized in place waits; Rollout replaces the pods",
    default: "InPlaceOrRollout",
  }),
};

/** The part of the rollout policy that the platform team configures. */
export type RolloutPolicy = Values<typeof rolloutPolicySettings>;
