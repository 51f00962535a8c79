import { readFileSync } from "node:fs";
import { parse } from "yaml";

const MANIFESTS = new URL("../../deploy/manifests/install.yaml", import.meta.url);
const SOURCE = /^# Source: .*\/(?:(?:api|controller)-deployment|tiers|[a-z-]+-polic(?:y|ies))\.yaml$/m;

/** The shipped Deployments of both processes, their tiers and admission policies, in a namespace of the test. */
export function shippedDeployments(namespace: string): object[] {
  return (
    readFileSync(MANIFESTS, "utf8")
      .replaceAll(/pipe-scaling-(?:system|records)/g, namespace)
      .split(/^---\n/m)
      .filter((document) => SOURCE.test(document))
      .map((document): unknown => parse(document))
      // A document may have only comments.
      .filter((object): object is object => object instanceof Object)
  );
}
