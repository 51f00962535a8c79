import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { checksumOf, SPEC_CHECKSUM } from "../../src/cli/doctor/policies.ts";
import type { KubeObject } from "../../src/kube/objects.ts";

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
      .filter((object): object is Shipped => object instanceof Object)
      .map(withChecksum)
  );
}

type Shipped = KubeObject & { readonly spec: object };

/** Other namespaces in the spec of a policy make another checksum. */
function withChecksum(object: Shipped): object {
  const { metadata, spec } = object;
  if (metadata.annotations?.[SPEC_CHECKSUM] === undefined) return object;
  const annotations = { ...metadata.annotations, [SPEC_CHECKSUM]: checksumOf(spec) };
  return { ...object, metadata: { ...metadata, annotations } };
}
