import { option } from "./option.ts";
import { FORMATS } from "./output.ts";
import { listOf, namespaceName, nonEmptyText, oneOf, onOff } from "./values.ts";

export const STANDARD_RECORDS = "pipe-scaling-records";

/** The flag that makes another command find the same records, with a leading blank. */
export function recordsFlag(namespace: string): string {
  return namespace === STANDARD_RECORDS ? "" : ` --namespace ${namespace}`;
}

/** Options that every command has: where the cluster is, and where in it the records are. */
export const clusterOptions = {
  kubeconfig: option(nonEmptyText.optional(), {
    placeholder: "file",
    description:
      "the cluster and the credentials; without it the user's default, or in a pod its service account",
  }),
  namespace: option(namespaceName, {
    placeholder: "name",
    description: "namespace of the records: organizations, services, members and keys",
    default: STANDARD_RECORDS,
  }),
};

export const outputOption = {
  output: option(oneOf(...FORMATS), {
    placeholder: "format",
    description: "table is for people, json and yaml are for programs",
    default: "table",
  }),
};

/** For commands that ask before they act; see confirm(). */
export const yesOption = {
  yes: option(onOff, { description: "do it without asking", default: "false" }),
};

export const ROLES = ["admin", "developer"] as const;
export const role = oneOf(...ROLES);
export const roles = listOf(role);
