import { RESIZE_STRATEGIES } from "../domain/resize-strategy.ts";
import { option, type Values } from "./option.ts";
import type { sizeSettings } from "./sizes.ts";
import { chartText, durationMs, integer, listOf, oneOf, written } from "./values.ts";

/** The API server allows up to 128 printable characters. The setting is a list, so a name cannot contain a comma. */
const MANAGER = /^[^,\p{C}]{1,128}$/u;
const MANAGER_RULE = "it must be the name of a field manager: at most 128 characters, without a comma";

const fieldManager = written(
  MANAGER_RULE,
  (text) => (MANAGER.test(text) ? text : undefined),
  chartText(MANAGER_RULE, [/^[^,]{1,128}$/]),
);

export const rolloutPolicySettings = {
  rolloutTimeoutMs: option(durationMs("1s", "24h"), {
    placeholder: "duration",
    description:
      "time within which the new pods of a pipe must become available, or it is rolled back; a Deployment can set a longer time, and for a StatefulSet, the time is that of each pod in turn",
    default: "15m",
  }),
  maxConcurrentRollouts: option(integer(1, 10_000), {
    placeholder: "number",
    description: "maximum number of concurrent rollouts across all services",
    default: "50",
  }),
  resizeStrategy: option(oneOf(...RESIZE_STRATEGIES), {
    placeholder: "strategy",
    description:
      "how pipes are resized if their PipeScaling has no strategy: InPlaceOrRollout changes the running pods and restarts nothing where the cluster can do that; InPlace never replaces pods, so a pipe that cannot be resized in place waits; Rollout replaces the pods",
    default: "InPlaceOrRollout",
  }),
  toleratedResizers: option(listOf(fieldManager).optional(), {
    placeholder: "names",
    description:
      "field managers of tools that resize running pods for a while, such as a startup boost: the controller waits until they return a pod to its size, and repairs a pod that any other tool resized",
    list: true,
  }),
};

/** The part of the rollout policy that the platform team configures. */
export type RolloutPolicy = Values<typeof rolloutPolicySettings & typeof sizeSettings>;
