import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { option, type Values } from "./option.ts";
import { opsPort, processSettings } from "./process.ts";
import { rolloutPolicySettings } from "./rollout-policy.ts";
import { requireDefaultsWithin } from "./sizes.ts";
import { readTiers } from "./tiers.ts";
import { nonEmptyText, onOff } from "./values.ts";

/** Maximum length. Kubernetes rejects Events of a reporter with a longer identity. */
const MAX_IDENTITY = 128;

const identity = nonEmptyText.refine(
  (text) => text.length <= MAX_IDENTITY,
  `it must have at most ${MAX_IDENTITY} characters`,
);

export const controllerSettings = {
  ...processSettings,
  opsPort: opsPort("9091"),
  identity: option(identity.optional(), {
    placeholder: "text",
    description: "holder identity in the lease; by default the host name and random characters",
    chart: false,
  }),
  dryRun: option(onOff, {
    description:
      "print the actions of the first reconciliation and exit, without writing anything or acquiring the lease",
    default: "false",
    chart: false,
  }),
  ...rolloutPolicySettings,
};

export type ControllerSettings = Omit<ReturnType<typeof toControllerSettings>, "dryRun" | "logLevel">;

/** @throws UsageError if the settings do not fit together, or the tiers file is invalid */
export function toControllerSettings(values: Values<typeof controllerSettings>) {
  const { tiersFile, ...settings } = values;
  const pipeNamespaces: readonly string[] = values.pipeNamespaces ?? [];
  const { identity: holder = `${hostname()}-${randomBytes(4).toString("hex")}` } = settings;
  const tiers = readTiers(tiersFile);
  requireDefaultsWithin(values.maximumCores, tiers);
  return { ...settings, pipeNamespaces, identity: holder, tiers };
}
