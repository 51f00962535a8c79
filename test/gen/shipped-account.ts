import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { plainManifests } from "../../deploy/manifests/plain-manifests.ts";

const MANIFESTS = new URL("../../deploy/manifests/install.yaml", import.meta.url);

/** The chart's templates that make accounts and their rights, as the manifests tell where each object is from. */
const SOURCE = /^# Source: .*\/(serviceaccounts|rbac)\.yaml$/m;

/** The same, and the admission policies that restrict the controller. */
const FENCED_SOURCE = /^# Source: .*\/(serviceaccounts|rbac|controller-policy|in-place-policies)\.yaml$/m;

export type Component = "api" | "controller";

/** Name of a process's ServiceAccount. */
export function accountName(component: Component): string {
  return `pipe-scaling-operator-${component}`;
}

/** Name of the ClusterRole of such an account, and of its binding. */
export function clusterRoleName(component: Component, namespace: string): string {
  return `${accountName(component)}.${namespace}`;
}

/** Name of the ClusterRole with which the controller lists nodes, and of its binding. */
export function nodesRoleName(namespace: string): string {
  return `${accountName("controller")}-nodes.${namespace}`;
}

/** Name of the Role of such an account in the namespace of records, and of its binding. */
export function recordsRoleName(component: Component): string {
  return `${accountName(component)}-records`;
}

/**
 * A process's account with just the rights that are shipped, where pipes may be in any namespace: out of the plain
 * manifests, which a test holds to the chart.
 *
 * @param namespace of the account, and of the records
 */
export function shippedAccount(component: Component, namespace: string): object[] {
  return objectsOf(component, namespace, readFileSync(MANIFESTS, "utf8"), SOURCE);
}

/** The account of a controller that may resize pods in place, with the admission policies that restrict it. */
export async function inPlaceAccount(namespace: string): Promise<object[]> {
  const manifests = await plainManifests("--set", "rbac.inPlaceResize=true");
  return objectsOf("controller", namespace, manifests, FENCED_SOURCE);
}

function objectsOf(component: Component, namespace: string, manifests: string, source: RegExp): object[] {
  const label = `app.kubernetes.io/component: ${component}\n`;
  return manifests
    .replaceAll(/pipe-scaling-(?:system|records)/g, namespace)
    .split(/^---\n/m)
    .filter((document) => source.test(document) && document.includes(label))
    .map((document): object => parse(document));
}
