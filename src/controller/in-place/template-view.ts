import { createHash } from "node:crypto";
import type { Container } from "../../kube/objects.ts";
import type { PodTemplate } from "./pod-template.ts";

/** A pod template, reduced to what shows whether another one is the same. */
export interface TemplateView {
  /** Resources of each container, by name. */
  readonly resources: ReadonlyMap<string, Container["resources"]>;
  /** Equal for templates that differ only in resources. */
  readonly templateHash: string;
}

const HASH_LABEL = "pod-template-hash";

export function toTemplateView(template: PodTemplate): TemplateView {
  return {
    resources: new Map(template.spec.containers.map(({ name, resources }) => [name, resources])),
    templateHash: hashWithoutResources(template),
  };
}

/** Kubernetes compares whole templates, the resources of other containers included. */
export function isSameTemplate(a: TemplateView, b: TemplateView, container: string): boolean {
  if (a.templateHash !== b.templateHash) return false;
  const others = ({ resources }: TemplateView) =>
    JSON.stringify([...resources].filter(([name]) => name !== container));
  return others(a) === others(b);
}

/** The API server writes the fields of an object in one order, so equal templates are equal texts. */
function hashWithoutResources({ metadata, spec }: PodTemplate): string {
  const labels = Object.entries(metadata?.labels ?? {}).filter(([name]) => name !== HASH_LABEL);
  const containers = spec.containers.map(({ resources: _, ...rest }) => rest);
  const text = JSON.stringify([
    { ...metadata, labels },
    { ...spec, containers },
  ]);
  return createHash("sha256").update(text).digest("base64");
}
