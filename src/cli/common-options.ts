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

/** For commands that ask before they act; see confirm(). */
export const yesOption = {
  yes: option(onOff, { description: "do not ask for confirmation", default: "false" }),
};

export const ROLES = ["admin", "developer"] as const;
export const role = oneOf(...ROLES);
export const roles = listOf(role);
