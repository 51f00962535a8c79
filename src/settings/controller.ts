import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import * as z from "zod";
import { option } from "./option.ts";
import { opsPort, processSettings } from "./process.ts";
import { rolloutPolicySettings } from "./rollout-policy.ts";
import { readTiers } from "./tiers.ts";
import { nonEmptyText, onOff } from "./values.ts";

export const controllerSettings = z.object({
  ...processSettings,
  opsPort: opsPort("9091"),
  identity: option(nonEmptyText.optional(), {
    placeholder: "text",
    description: "name under which it holds the lease; without it the host's name and random characters",
    chart: false,
  }),
  dryRun: option(onOff, {
    description: "print what it would do first, and end; nothing is written and no lease is acquired",
    default: "false",
    chart: false,
  }),
  ...rolloutPolicySettings,
});

export type ControllerSettings = Omit<ReturnType<typeof toControllerSettings>, "dryRun" | "logLevel">;

/** @throws UsageError with what is wrong with the tiers file */
export function toControllerSettings(values: z.output<typeof controllerSettings>) {
  const { tiersFile, ...settings } = values;
  const pipeNamespaces: readonly string[] = values.pipeNamespaces ?? [];
  const identity = settings.identity ?? `${hostname()}-${randomBytes(4).toString("hex")}`;
  return { ...settings, pipeNamespaces, identity, tiers: readTiers(tiersFile) };
}
