import type { PodTemplate, TemplateContainer } from "../../../kube/objects.ts";
import { CONTAINER_ANNOTATION, DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../names.ts";
import type { Fallback } from "../last-rollout.ts";

/** The container to resize, or the reason why it cannot be determined. @param named value of its annotation */
export function chooseContainer(
  { spec: { containers } }: PodTemplate,
  named: string | undefined,
): TemplateContainer | { readonly problem: string } {
  const [first, second] = containers;
  const chosen = named === undefined && !second ? first : containers.find(({ name }) => name === named);
  if (chosen) return chosen;
  const names = containers.map(({ name }) => name).join(", ");
  return {
    problem:
      named === undefined
        ? `it has the containers ${names}: set the annotation ${CONTAINER_ANNOTATION} to the container to resize`
        : `the annotation ${CONTAINER_ANNOTATION} names "${named}"; its containers are ${names}`,
  };
}

/** Returns true if the watch of the pods of pipes shows the pods of this template. */
export function isLabelled({ metadata }: PodTemplate): boolean {
  return metadata?.labels?.[TYPE_LABEL] === DATABASE_TYPE;
}

/**
 * The admission policies of the chart allow a resize only of pods and ReplicaSets that say themselves that they belong
 * to a pipe, and which container is to be resized.
 *
 * @returns `undefined` if the pods may be resized in place
 */
export function podTemplateProblem(
  template: PodTemplate,
  serviceId: string,
  container: string,
): Fallback | undefined {
  const { labels = {}, annotations = {} } = template.metadata ?? {};
  const required = { [SERVICE_LABEL]: serviceId, [TYPE_LABEL]: DATABASE_TYPE };
  const missing = Object.entries(required).filter(([key, value]) => labels[key] !== value);
  if (missing.length > 0) {
    const names = missing.map(([key, value]) => `${key}=${value}`).join(" and ");
    return { reason: "PodsNotLabeled", message: `its pod template does not have the label ${names}` };
  }
  const named = chooseContainer(template, annotations[CONTAINER_ANNOTATION]);
  if ("name" in named && named.name === container) return undefined;
  const message = `its pod template does not have the annotation ${CONTAINER_ANNOTATION}=${container}`;
  return { reason: "ContainerNotNamed", message };
}
