import { type RolloutWindow, windowAt } from "../../domain/rollout-window.ts";
import { formatRolloutWindow, rolloutWindowValue, writtenWindow } from "../../records/rollout-window.ts";
import { option } from "../../settings/option.ts";
import { nonEmptyText } from "../../settings/values.ts";
import { argument, orWord, uuid } from "../options.ts";
import type { Row } from "../output.ts";

export const organizationArgument = { organization: argument(uuid, "ID of the organization") };
export const serviceArgument = { service: argument(uuid, "ID of the service") };

export const keyArgument = { key: argument(uuid, "ID of the API key, as admin key list shows it") };

export const organizationOption = {
  organization: option(uuid, { placeholder: "uuid", description: "ID of the organization" }),
};

export const idOption = {
  id: option(uuid.optional(), {
    placeholder: "uuid",
    description: "ID of the new record (default: a random one)",
  }),
};

export const newNameOption = {
  name: option(nonEmptyText.optional(), { placeholder: "text", description: "new name", flagOnly: true }),
};

const WINDOW =
  "window in which rollouts may restart pods: a YAML map of schedule, duration, timeZone and appliesTo";

/** For the commands that create a record. */
export const windowOption = {
  rolloutWindow: option(rolloutWindowValue.optional(), { placeholder: "map", description: WINDOW }),
};

/** For the commands that change a record. */
export const newWindowOption = {
  rolloutWindow: option(orWord("none", rolloutWindowValue).optional(), {
    placeholder: "map",
    description: `${WINDOW}; none removes the window`,
    flagOnly: true,
  }),
};

/** Returns the new value in the record: `null` removes the window, and `undefined` keeps it. */
export function windowChange(window: RolloutWindow | "none" | undefined): string | null | undefined {
  return window === "none" ? null : window && formatRolloutWindow(window);
}

/** The window and its current state, as they are printed. */
export function windowRow(window: RolloutWindow | undefined, nowMs: number): Row {
  if (!window) return { rolloutWindow: undefined };
  const state = windowAt(window, nowMs);
  const until = new Date(state.open ? state.untilMs : state.opensAtMs).toISOString();
  const rolloutWindowState = `${state.open ? "open" : "closed"} until ${until}`;
  return { rolloutWindow: writtenWindow(window), rolloutWindowState };
}
