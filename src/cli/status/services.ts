import { type PipeScalingView, toPipeScalingView } from "../../controller/observe/pipe-scaling-view.ts";
import { PIPE_SCALINGS } from "../../crd/names.ts";
import type { PipeScaling } from "../../crd/pipe-scaling.ts";
import { canonicalUuid } from "../../domain/identifiers.ts";
import type { KubeClient } from "../../kube/client.ts";
import { isCode } from "../../kube/errors.ts";
import type { ConfigMap, KubeObject } from "../../kube/objects.ts";
import type { Organization } from "../../records/organization.ts";
import { parseService, type Service, serviceConfigMapName } from "../../records/service.ts";
import { PROGRAM } from "../command.ts";
import { recordsFlag } from "../common-options.ts";
import { CliError } from "../failure.ts";
import type { RescaleView } from "../view/rescale-view.ts";
import { listAll, type Selection } from "./list.ts";
import { oldTierOf, viewOf } from "./scaling-view.ts";

/** By their ids. */
export type Organizations = ReadonlyMap<string, Organization>;

export interface ServiceStatus {
  readonly service: Service;
  readonly scaling: PipeScalingView | undefined;
  readonly view: RescaleView;
}

/** @throws CliError if the cluster has no CRD, and KubeApiError if PipeScalings may not be listed */
export async function readServiceStatus(
  client: KubeClient,
  service: Service,
  oldTier: string | undefined,
  signal: AbortSignal,
): Promise<ServiceStatus> {
  const { id, namespace, name } = service;
  const [scaling] = await listScalings(client, { namespace, fieldSelector: `metadata.name=${id}` }, signal);
  return { service, scaling, view: viewOf(name, scaling, oldTier) };
}

/** Reads all PipeScalings at once if that is allowed, otherwise namespace by namespace. */
export async function readStatuses(
  client: KubeClient,
  services: readonly Service[],
  organizations: Organizations,
  signal: AbortSignal,
): Promise<ServiceStatus[]> {
  const list = (namespace: string | undefined) =>
    unlessForbidden(listScalings(client, { namespace }, signal));
  const everywhere = await list(undefined);
  const namespaces = everywhere ? [] : [...new Set(services.map(({ namespace }) => namespace))];
  const lists = await Promise.all(namespaces.map(list));
  const forbidden = new Set(namespaces.filter((_, at) => lists[at] === undefined));
  const found = everywhere ?? lists.flatMap((scalings) => scalings ?? []);
  const scalings = new Map(found.map((scaling) => [keyOf(scaling.metadata), scaling]));
  return services.map((service) => {
    const { id, name, namespace } = service;
    const scaling = scalings.get(keyOf({ namespace, name: id }));
    const view = viewOf(name, scaling, oldTierOf(scaling, organizations.get(service.organizationId)));
    if (!forbidden.has(namespace)) return { service, scaling, view };
    const message = `You may not list the PipeScalings of the namespace ${namespace}.`;
    return { service, scaling, view: { ...view, reason: "Forbidden", message } };
  });
}

async function listScalings(
  client: KubeClient,
  selection: Omit<Selection, "resource">,
  signal: AbortSignal,
): Promise<PipeScalingView[]> {
  try {
    const resource = PIPE_SCALINGS;
    const objects = await listAll<KubeObject & PipeScaling>(client, { resource, ...selection }, signal);
    return objects.map(toPipeScalingView);
  } catch (error) {
    if (!isCode(error, 404)) throw error;
    const message =
      "The cluster has no CRD of PipeScaling: install the operator, or at least its CustomResourceDefinition (crds/).";
    throw new CliError(message, { cause: error });
  }
}

async function unlessForbidden<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (isCode(error, 403)) return undefined;
    throw error;
  }
}

function keyOf({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `${namespace}/${name}`;
}

/**
 * The service with this id or name.
 *
 * @param records of all services
 * @throws CliError if there is none, if its record is malformed, or if several have the name
 */
export function findServiceNamed(records: readonly ConfigMap[], named: string, namespace: string): Service {
  const recordName = serviceConfigMapName(canonicalUuid(named) ?? "");
  const byId = records.find(({ metadata }) => metadata.name === recordName);
  const found = byId ? [byId] : records.filter(({ data }) => data?.["name"] === named);
  const [service, ...others] = found.map((record) => wellFormed(record, namespace));
  if (!service) {
    throw new CliError(
      `There is no service ${JSON.stringify(named)} in the namespace ${namespace}: ${PROGRAM} admin service list${recordsFlag(namespace)} lists all services.`,
    );
  }
  if (others.length === 0) return service;
  const ids = [service, ...others].map((each) => `  ${each.id}  (organization ${each.organizationId})`);
  throw new CliError(
    `${ids.length} services have the name ${JSON.stringify(named)}, give one of the ids:\n${ids.join("\n")}`,
  );
}

function wellFormed({ metadata, data }: ConfigMap, namespace: string): Service {
  const parsed = parseService(metadata.name, metadata.labels, data);
  if (parsed.ok) return parsed.value;
  throw new CliError(
    `The record of this service is malformed: ${parsed.problem}. Correct it with kubectl edit configmap ${metadata.name} --namespace ${namespace}.`,
  );
}
