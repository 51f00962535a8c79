import type { KubeObject } from "../../kube/objects.ts";
import type { ApiKey } from "../../records/api-key.ts";
import { type Organization, organizationConfigMapName } from "../../records/organization.ts";
import { type Service, serviceConfigMapName } from "../../records/service.ts";
import type { Finding } from "./finding.ts";

/** How one namespace is. */
export type NamespaceState = "there" | "terminating" | "missing";

export interface References {
  readonly organizations: readonly Organization[];
  readonly services: readonly Service[];
  readonly keys: readonly ApiKey[];
  /** Names of the tiers that there are; not known where they could not be read. */
  readonly tiers: ReadonlySet<string> | undefined;
  /** Of those that services name; not known where they could not be looked at. */
  readonly namespaces: ReadonlyMap<string, NamespaceState>;
  /** Where the controller looks for pipes; empty for all. */
  readonly pipeNamespaces: readonly string[];
}

/** Whether what records say of other things is so. */
export function examineReferences(tenants: References, records: string): Finding[] {
  const known = new Set(tenants.organizations.map(({ id }) => id));
  return [
    ...tenants.organizations.flatMap((each) => ofTier(each, tenants.tiers, records)),
    ...tenants.services.flatMap((each) => [
      ...ofOrganization(each, known, records),
      ...ofNamespace(each, tenants, records),
    ]),
    ...tenants.keys.flatMap((each) => ofKey(each, known, records)),
  ];
}

const check = "services";

function ofTier(
  { id, name, tier }: Organization,
  tiers: ReadonlySet<string> | undefined,
  records: string,
): Finding[] {
  if (!tiers || tiers.has(tier)) return [];
  return [
    {
      severity: "error",
      check,
      message: `The organization ${name} has the tier "${tier}", which there is not, so its pipes are not resized; the tiers are ${[...tiers].join(", ")}.`,
      remedy: `pipe-scaling admin organization update ${id} --tier <tier> --namespace ${records}, or add the tier to the values of the chart.`,
    },
  ];
}

function ofOrganization(
  { id, name, organizationId }: Service,
  known: ReadonlySet<string>,
  records: string,
): Finding[] {
  if (known.has(organizationId)) return [];
  return [
    {
      severity: "error",
      check,
      message: `The service ${name} (${id}) is of the organization ${organizationId}, of which there is no record that can be read, so its pipes are not resized.`,
      remedy: `Make the ConfigMap ${organizationConfigMapName(organizationId)} (pipe-scaling admin organization create --id ${organizationId} --name <name> --tier <tier> --namespace ${records}), or correct the label: kubectl edit configmap ${serviceConfigMapName(id)} --namespace ${records}`,
    },
  ];
}

function ofNamespace(
  { id, name, namespace }: Service,
  { namespaces, pipeNamespaces }: References,
  records: string,
): Finding[] {
  const state = namespaces.get(namespace);
  const edit = `kubectl edit configmap ${serviceConfigMapName(id)} --namespace ${records}`;
  if (state === "missing") {
    return [
      {
        severity: "error",
        check,
        message: `The pipes of the service ${name} (${id}) are said to be in the namespace ${namespace}, which there is not.`,
        remedy: `kubectl create namespace ${namespace}, or name another one: ${edit}`,
      },
    ];
  }
  if (state === "terminating") {
    return [
      {
        severity: "warning",
        check,
        message: `The namespace ${namespace} of the service ${name} (${id}) is being deleted: no pipe in it is resized any more.`,
        remedy: `Once its pipes run elsewhere: ${edit}`,
      },
    ];
  }
  if (pipeNamespaces.length === 0 || pipeNamespaces.includes(namespace)) return [];
  return [
    {
      severity: "error",
      check,
      message: `The pipes of the service ${name} (${id}) are in the namespace ${namespace}, where the controller does not look.`,
      remedy: `Add it to pipes.namespaces in the values of the chart: helm upgrade.`,
    },
  ];
}

function ofKey({ id, name, organizationId }: ApiKey, known: ReadonlySet<string>, records: string): Finding[] {
  if (known.has(organizationId)) return [];
  return [
    {
      severity: "warning",
      check,
      message: `The API key ${name} (${id}) is of the organization ${organizationId}, of which there is no record that can be read: it can do nothing.`,
      remedy: `pipe-scaling admin key delete ${id} --namespace ${records}, or make the organization: pipe-scaling admin organization create --id ${organizationId} --name <name> --tier <tier> --namespace ${records}`,
    },
  ];
}

export function stateOf(namespace: KubeObject | undefined): NamespaceState {
  if (!namespace) return "missing";
  return namespace.metadata.deletionTimestamp === undefined ? "there" : "terminating";
}
