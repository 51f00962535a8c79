import { ClusterError } from "./errors.ts";

/** Short enough for the paths and the kubeconfig entries that are made of it. */
const NAME = /^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$/;

/** @throws ClusterError if a cluster cannot be called that. */
export function checkName(name: string): string {
  if (NAME.test(name)) return name;
  throw new ClusterError(
    `"${name}" cannot be the name of a cluster: give at most 40 lower case letters, digits and dashes, with no dash first or last.`,
  );
}
