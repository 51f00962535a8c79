import { type RolloutWindow, windowAt } from "../../domain/rollout-window.ts";
import { formatRolloutWindow, rolloutWindowValue, writtenWindow } from "../../records/rollout-window.ts";
import { option, UsageError } from "../../settings/option.ts";
import { readTiers } from "../../settings/tiers.ts";
import { nonEmptyText } from "../../settings/values.ts";
import type { Row } from "../output.ts";
import { orWord, uuid } from "../values.ts";
import type { DataChange } from "./records.ts";

export const organizationOption = {
  organization: option(uuid, { placeholder: "uuid", description: "id of the organization" }),
};

export const idOption = {
  id: option(uuid.optional(), { placeholder: "uuid", description: "its id; without it a new one" }),
};

export const newNameOption = {
  name: option(nonEmptyText.optional(), { placeholder: "text", description: "its new name", flagOnly: true }),
};

/** @throws UsageError with the tiers that there are */
export function checkTier(tier: string, tiersFile: string | undefined): void {
  const tiers = readTiers(tiersFile);
  if (tiers.has(tier)) return;
  throw new UsageError(
    `--tier (or PIPE_SCALING_TIER) is ${JSON.stringify(tier)}, but it must be one of the tiers: ${[...tiers.keys()].join(", ")}.`,
  );
}

/** @throws UsageError if an update changes nothing */
export function requireChange(changes: readonly unknown[], flags: string): void {
  if (changes.every((change) => change === undefined)) {
    throw new UsageError(`There is nothing to change: give ${flags}.`);
  }
}

/** For the commands that create a record. */
export const rolloutWindowOption = {
  rolloutWindow: option(rolloutWindowValue.optional(), {
    placeholder: "map",
    description: "window in which rollouts may restart pods: a YAML map of schedule, duration and timeZone",
  }),
};

/** For the commands that change a record. */
export const newRolloutWindowOption = {
  rolloutWindow: option(orWord("none", rolloutWindowValue).optional(), {
    placeholder: "map",
    description:
      "window in which rollouts may restart pods: a YAML map of schedule, duration and timeZone; none removes the window",
    flagOnly: true,
  }),
};

export function rolloutWindowChange(window: RolloutWindow | "none" | undefined): DataChange {
  if (window === undefined) return {};
  return { rolloutWindow: window === "none" ? null : formatRolloutWindow(window) };
}

/** The window as it is printed. */
export function rolloutWindowRow(window: RolloutWindow | undefined): Row {
  return window ? { rolloutWindow: writtenWindow(window) } : {};
}

/** The window and its current state. */
export function rolloutWindowStateRow(window: RolloutWindow | undefined): Row {
  if (!window) return { rolloutWindow: undefined };
  const state = windowAt(window, Date.now());
  const rolloutWindowState = state.open
    ? `open until ${new Date(state.untilMs).toISOString()}`
    : `closed until ${new Date(state.opensAtMs).toISOString()}`;
  return { ...rolloutWindowRow(window), rolloutWindowState };
}
