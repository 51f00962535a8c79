import { DEFAULT_RECORDS_NAMESPACE } from "../settings/cluster.ts";
import { option } from "../settings/option.ts";
import { listOf, oneOf, onOff } from "../settings/values.ts";
import { FORMATS } from "./output.ts";

/** The flag that makes another command find the same records, with a leading blank. */
export function recordsFlag(namespace: string): string {
  return namespace === DEFAULT_RECORDS_NAMESPACE ? "" : ` --namespace ${namespace}`;
}

export const outputOption = {
  output: option(oneOf(...FORMATS), {
    placeholder: "format",
    description: "table is for people, json and yaml are for programs",
    default: "table",
  }),
};

export const wideOutputOption = {
  output: option(oneOf(...FORMATS, "wide"), {
    placeholder: "format",
    description: "table and wide are for people, json and yaml are for programs; wide has more columns",
    default: "table",
  }),
};

/** An option without a value, off by default. */
export function switchOption(description: string) {
  return option(onOff, { description, default: "false" });
}

/** For commands that ask before they act; see confirm(). */
export const yesOption = {
  yes: switchOption("do not ask for confirmation"),
};

export const ROLES = ["admin", "developer"] as const;
export const role = oneOf(...ROLES);
export const roles = listOf(role);
