import * as z from "zod";
import { canonicalUuid } from "../domain/identifiers.ts";
import type { RolloutWindow } from "../domain/rollout-window.ts";
import { ORGANIZATION_LABEL, recordLabels } from "./labels.ts";
import { idInName, wrongName } from "./organization.ts";
import { nonEmpty, type Parsed, parseRecord } from "./parse.ts";
import { formatRolloutWindow, rolloutWindowValue } from "./rollout-window.ts";

/** ConfigMap `service-<id>`. The organization is a label, so that selectors and tenancy checks use the same value. */
export interface Service {
  readonly id: string;
  readonly organizationId: string;
  readonly name: string;
  /** Namespace where the service's pipes run. */
  readonly namespace: string;
  /** If absent, the window of the organization applies. */
  readonly rolloutWindow?: RolloutWindow | undefined;
}

const PREFIX = "service-";

export function serviceConfigMapName(id: string): string {
  return `${PREFIX}${id}`;
}

/** Returns the ID in the name of a record; `undefined` if it is not the name of a service. */
export function serviceIdOf(name: string): string | undefined {
  return idInName(name, PREFIX);
}

/** The keys of the ConfigMap. */
export const serviceData = z.object({
  name: nonEmpty.meta({ description: "Name for people." }),
  namespace: nonEmpty
    .regex(
      /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/,
      "must be a namespace name: lowercase letters, digits and hyphens",
    )
    .meta({
      description:
        "Namespace of the pipes and of the PipeScaling. Workloads elsewhere are not pipes of the service.",
    }),
  rolloutWindow: rolloutWindowValue.optional().meta({
    description:
      "Time in which rollouts may restart pods. Without it, the window of the organization applies.",
  }),
});

export function parseService(
  objectName: string,
  labels: Readonly<Record<string, string>> | undefined,
  values: Readonly<Record<string, string>> | undefined,
): Parsed<Service> {
  const id = serviceIdOf(objectName);
  if (id === undefined) return wrongName(PREFIX);
  const organizationId = labels?.[ORGANIZATION_LABEL] ?? "";
  if (canonicalUuid(organizationId) !== organizationId) {
    return {
      ok: false,
      problem: `the label ${ORGANIZATION_LABEL} must be the lowercase ID of the organization`,
    };
  }
  const parsed = parseRecord(serviceData, values);
  return parsed.ok ? { ok: true, value: { id, organizationId, ...parsed.value } } : parsed;
}

export function serviceConfigMap(service: Service) {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      name: serviceConfigMapName(service.id),
      labels: recordLabels("service", service.organizationId),
    },
    data: {
      name: service.name,
      namespace: service.namespace,
      ...(service.rolloutWindow && { rolloutWindow: formatRolloutWindow(service.rolloutWindow) }),
    },
  };
}
