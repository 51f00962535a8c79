import { readFileSync } from "node:fs";
import { parse } from "yaml";

const MANIFESTS = new URL("../../deploy/manifests/install.yaml", import.meta.url);
const SOURCE = /^# Source: .*\/(?:(?:api|controller)-deployment|tiers)\.yaml$/m;

/** The shipped Deployments of both processes and their tiers, in a namespace of the test. */
export function shippedDeployments(namespace: string): object[] {
  return readFileSync(MANIFESTS, "utf8")
    .replaceAll(/pipe-scaling-(?:system|records)/g, namespace)
    .split(/^---\n/m)
    .filter((document) => SOURCE.test(document))
    .map((document): object => parse(document));
}
