import { ClusterError } from "./errors.ts";

/** How users run main.ts, in this repository and in a project that has installed this package. */
export const COMMAND = "npx local-cluster";

/** The name is part of paths and of entries in kubeconfigs. */
const NAME = /^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$/;

/** @throws ClusterError if it is not a valid name */
export function checkName(name: string): string {
  if (NAME.test(name)) return name;
  throw new ClusterError(
    `"${name}" is not a valid name of a cluster: use at most 40 lowercase letters, digits and dashes, and no dash at the start or end.`,
  );
}
