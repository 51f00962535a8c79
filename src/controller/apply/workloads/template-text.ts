import { parseQuantity } from "../../../domain/quantity.ts";
import type { PodTemplate } from "../../../kube/pods.ts";
import { TEMPLATE_HASH_LABEL } from "../../names.ts";

/**
 * The API server writes the fields of an object in a fixed order, so equal templates are equal texts. Kubernetes
 * compares whole templates, the resources of other containers included, but quantities by their value.
 *
 * @param sized name of a container whose resources do not count
 */
export function templateText({ metadata, spec }: PodTemplate, sized?: string): string {
  // Kubernetes adds this label to the template of a ReplicaSet.
  const labels = Object.entries(metadata?.labels ?? {}).filter(([name]) => name !== TEMPLATE_HASH_LABEL);
  const containers = spec.containers.map((each) =>
    each.name === sized ? { ...each, resources: undefined } : each,
  );
  return JSON.stringify(
    [
      { ...metadata, labels },
      { ...spec, containers },
    ],
    withOneNotation,
  );
}

/**
 * The fields of a template whose quantities can have several notations: resources of containers, of pods and of volume
 * claims, and the limit of an empty directory. A label or an annotation with such a name is a text, and no object. The
 * divisor of a `resourceFieldRef` is a quantity too, but the API server accepts and stores only one text for each value.
 */
const WITH_QUANTITIES = ["requests", "limits", "overhead", "emptyDir"];

/** For `JSON.stringify`: writes each quantity in the same notation, such as `1Gi` and `1073741824`. */
function withOneNotation(field: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || !WITH_QUANTITIES.includes(field)) return value;
  const written = Object.entries(value).map(([name, amount]) => [
    name,
    parseQuantity(`${amount}`)?.toString() ?? amount,
  ]);
  return Object.fromEntries(written);
}
