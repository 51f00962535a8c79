import { type RolloutWindow, windowAt } from "../../domain/rollout-window.ts";
import { formatRolloutWindow, rolloutWindowValue, writtenWindow } from "../../records/rollout-window.ts";
import { option } from "../../settings/option.ts";
import type { Row } from "../output.ts";
import { orWord } from "../values.ts";
import type { DataChange } from "./records.ts";

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
