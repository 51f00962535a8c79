import * as z from "zod";
import { canonicalUuid } from "../domain/identifiers.ts";
import type { RolloutWindow } from "../domain/rollout-window.ts";
import { recordLabels } from "./labels.ts";
import { instant, type Malformed, nonEmpty, type Parsed, parseRecord, yamlValue } from "./parse.ts";
import { formatRolloutWindow, rolloutWindowValue } from "./rollout-window.ts";

/** ConfigMap `organization-<id>`. */
export interface Organization {
  readonly id: string;
  readonly name: string;
  readonly createdAt: Date;
  readonly tier: string;
  readonly byocConfig: readonly { readonly accountName: string; readonly id: string }[];
  readonly privateEndpoints: readonly { readonly description: string; readonly id: string }[];
  /** Applies to services without their own window; if absent, rollouts may start at any time. */
  readonly rolloutWindow?: RolloutWindow | undefined;
}

const PREFIX = "organization-";

export function organizationConfigMapName(id: string): string {
  return `${PREFIX}${id}`;
}

/** Returns the ID in the name of a record; `undefined` if it is not the name of an organization. */
export function organizationIdOf(name: string): string | undefined {
  return idInName(name, PREFIX);
}

/** The keys of the ConfigMap. */
export const organizationData = z.object({
  name: nonEmpty.meta({ description: "Display name." }),
  createdAt: instant.meta({ description: "Time of creation." }),
  tier: nonEmpty.meta({
    description: "Name of a tier, which sets the default and the maximum size of the pipes of all services.",
  }),
  byocConfig: yamlValue(
    z.array(
      z.object({
        accountName: z.string().meta({ description: "Name of the cloud account." }),
        id: z.string().meta({ description: "ID of the cloud account." }),
      }),
    ),
  )
    .default([])
    .meta({ description: "Cloud accounts of the customer. The API returns them, but does not use them." }),
  privateEndpoints: yamlValue(
    z.array(
      z.object({
        description: z.string().meta({ description: "Human-readable description." }),
        id: z.string().meta({ description: "ID of the endpoint." }),
      }),
    ),
  )
    .default([])
    .meta({
      description: "Private endpoints of the customer. The API returns them, but does not use them.",
    }),
  rolloutWindow: rolloutWindowValue.optional().meta({
    description:
      "Recurring window in which rollouts may restart pods of services that set no window of their own. If absent, rollouts may start at any time.",
  }),
});

export function parseOrganization(
  objectName: string,
  values: Readonly<Record<string, string>> | undefined,
): Parsed<Organization> {
  const id = organizationIdOf(objectName);
  if (id === undefined) return wrongName(PREFIX);
  const parsed = parseRecord(organizationData, values);
  return parsed.ok ? { ok: true, value: { id, ...parsed.value } } : parsed;
}

/** Returns the problem of a name that is not `prefix` and the lowercase UUID of the owner. */
export function nameProblem(name: string, prefix: string): Malformed | undefined {
  return idInName(name, prefix) === undefined ? wrongName(prefix) : undefined;
}

export function wrongName(prefix: string): Malformed {
  return { ok: false, problem: `the name must be ${prefix}<lowercase UUID>`, isImmutable: true };
}

/** Returns the lowercase UUID after `prefix` in the name of an object. */
export function idInName(name: string, prefix: string): string | undefined {
  const id = name.startsWith(prefix) ? name.slice(prefix.length) : "";
  return canonicalUuid(id) === id ? id : undefined;
}

export function organizationConfigMap(
  organization: Pick<Organization, "id" | "name" | "createdAt" | "tier" | "rolloutWindow">,
) {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      name: organizationConfigMapName(organization.id),
      labels: recordLabels("organization", organization.id),
    },
    data: {
      name: organization.name,
      createdAt: organization.createdAt.toISOString(),
      tier: organization.tier,
      ...(organization.rolloutWindow && { rolloutWindow: formatRolloutWindow(organization.rolloutWindow) }),
    },
  };
}
