import { type RolloutWindow, windowAt } from "../../domain/rollout-window.ts";
import type { Tiers } from "../../domain/tier.ts";
import type { KubeObject } from "../../kube/objects.ts";
import type { Parsed } from "../../records/parse.ts";
import { formatRolloutWindow, rolloutWindowValue, writtenWindow } from "../../records/rollout-window.ts";
import { option, UsageError } from "../../settings/option.ts";
import type { Io } from "../io.ts";
import type { Row } from "../output.ts";
import { orWord, uuid } from "../values.ts";
import type { DataChange } from "./records.ts";

export const organizationOption = {
  organization: option(uuid, { placeholder: "uuid", description: "id of the organization" }),
};

/** @throws UsageError with the tiers that there are */
export function checkTier(tier: string, tiers: Tiers): void {
  if (tiers.has(tier)) return;
  throw new UsageError(
    `--tier (or PIPE_SCALING_TIER) is ${JSON.stringify(tier)}, but it must be one of the tiers: ${[...tiers.keys()].join(", ")}.`,
  );
}

/** The records that can be read; of each other one a line on standard error says what is wrong. */
export function wellFormed<O extends KubeObject, T>(
  io: Io,
  objects: readonly O[],
  parse: (object: O) => Parsed<T>,
): T[] {
  return objects.flatMap((object) => {
    const parsed = parse(object);
    if (parsed.ok) return [parsed.value];
    io.err(`The record ${object.metadata.name} is malformed and was skipped: ${parsed.problem}.\n`);
    return [];
  });
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

/** The same, with the state of the window at that time. */
export function rolloutWindowStateRow(window: RolloutWindow | undefined, nowMs: number): Row {
  if (!window) return { rolloutWindow: undefined };
  const state = windowAt(window, nowMs);
  const rolloutWindowState = state.open
    ? `open until ${new Date(state.untilMs).toISOString()}`
    : `closed until ${new Date(state.opensAtMs).toISOString()}`;
  return { ...rolloutWindowRow(window), rolloutWindowState };
}

export function changedWindow(
  before: RolloutWindow | undefined,
  change: RolloutWindow | "none" | undefined,
): RolloutWindow | undefined {
  return change === "none" ? undefined : (change ?? before);
}
