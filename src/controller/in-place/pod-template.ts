import type { Deployment, ObjectMeta } from "../../kube/objects.ts";
import { CONTAINER_ANNOTATION, DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../names.ts";
import type { Fallback } from "./view.ts";

/** A pod template with the fields that decide whether its pods may be resized in place. */
export type PodTemplate = Deployment["spec"]["template"] & { readonly metadata?: Partial<ObjectMeta> };

/**
 * The admission policies of the chart allow a resize only of pods and ReplicaSets that say themselves that they belong
 * to a pipe, and which container is to be resized.
 *
 * @returns `undefined` if the pods may be resized in place
 */
export function podTemplateProblem(
  { metadata, spec }: PodTemplate,
  serviceId: string,
  container: string,
): Fallback | undefined {
  const { labels = {}, annotations = {} } = metadata ?? {};
  const required = { [SERVICE_LABEL]: serviceId, [TYPE_LABEL]: DATABASE_TYPE };
  const missing = Object.entries(required).filter(([key, value]) => labels[key] !== value);
  if (missing.length > 0) {
    const names = missing.map(([key, value]) => `${key}=${value}`).join(" and ");
    return { reason: "PodsNotLabeled", message: `its pod template does not have the label ${names}` };
  }
  const { containers } = spec;
  const named =
    annotations[CONTAINER_ANNOTATION] ?? (containers.length === 1 ? containers[0]?.name : undefined);
  if (named === container) return undefined;
  const message = `its pod template does not have the annotation ${CONTAINER_ANNOTATION}=${container}`;
  return { reason: "ContainerNotNamed", message };
}
