import { type PipeScalingView, toPipeScalingView } from "../../controller/observe/pipe-scaling-view.ts";
import { PIPE_SCALINGS } from "../../crd/names.ts";
import type { PipeScaling } from "../../crd/pipe-scaling.ts";
import { canonicalUuid } from "../../domain/identifiers.ts";
import { unlessCode } from "../../kube/errors.ts";
import type { ConfigMap, KubeObject } from "../../kube/objects.ts";
import type { Organization } from "../../records/organization.ts";
import { type Service, serviceConfigMapName } from "../../records/service.ts";
import { SERVICES } from "../admin/kinds.ts";
import type { Records } from "../admin/records.ts";
import { CliError } from "../failure.ts";
import { programCommand } from "../options.ts";
import { listAll, type Selection } from "../reading.ts";
import type { RescaleView } from "../view/rescale-view.ts";
import { viewOf } from "./scaling-view.ts";

/** Well-formed organizations by their IDs. */
export type Organizations = ReadonlyMap<string, Organization>;

export interface ServiceStatus {
  readonly service: Service;
  /** Absent if its record is missing or malformed. */
  readonly organization: Organization | undefined;
  readonly scaling: PipeScalingView | undefined;
  readonly view: RescaleView;
  /** Time of the read by the clock of the API server, in milliseconds since 1970. */
  readonly nowMs: number;
}

export async function readStatus(
  records: Records,
  service: Service,
  organizations: Organizations,
  signal: AbortSignal,
): Promise<ServiceStatus> {
  const { id, namespace } = service;
  const selection = { namespace, query: { fieldSelector: `metadata.name=${id}` } };
  const [scaling] = await listScalings(records, selection, signal);
  return statusOf(service, organizations, scaling, records.clock.now());
}

function statusOf(
  service: Service,
  organizations: Organizations,
  scaling: PipeScalingView | undefined,
  nowMs: number,
): ServiceStatus {
  const organization = organizations.get(service.organizationId);
  return { service, organization, scaling, view: viewOf(service.name, scaling, nowMs), nowMs };
}

/** Reads all PipeScalings at once if that is allowed, otherwise namespace by namespace. */
export async function readStatuses(
  records: Records,
  services: readonly Service[],
  organizations: Organizations,
  signal: AbortSignal,
): Promise<ServiceStatus[]> {
  const list = (namespace?: string) => listScalings(records, { namespace }, signal);
  const namespaces = [...new Set(services.map(({ namespace }) => namespace))];
  const all = (await unlessCode(403, list(), undefined)) ?? (await Promise.all(namespaces.map(list))).flat();
  const scalings = new Map(all.map((each) => [`${each.metadata.namespace}/${each.metadata.name}`, each]));
  const nowMs = records.clock.now();
  return services.map((service) =>
    statusOf(service, organizations, scalings.get(`${service.namespace}/${service.id}`), nowMs),
  );
}

/** Without the CRD there are none. */
async function listScalings(
  { kube }: Records,
  selection: Omit<Selection, "resource">,
  signal: AbortSignal,
): Promise<PipeScalingView[]> {
  const list = listAll<KubeObject & PipeScaling>(kube, { resource: PIPE_SCALINGS, ...selection }, signal);
  return (await unlessCode(404, list, [])).map(toPipeScalingView);
}

/**
 * The service with this ID or name.
 *
 * @param objects the records of all services
 * @throws CliError if there is none, if its record is malformed, or if several have the name
 */
export function findService(
  { namespace, place }: Records,
  objects: readonly ConfigMap[],
  idOrName: string,
): Service {
  const recordName = serviceConfigMapName(canonicalUuid(idOrName) ?? "");
  const byId = objects.filter(({ metadata }) => metadata.name === recordName);
  const found = byId.length > 0 ? byId : objects.filter(({ data }) => data?.["name"] === idOrName);
  const services = found.map((object) => SERVICES.read(object, "this service", place));
  const [service, ...others] = services;
  if (!service) {
    const list = programCommand(place, "admin service list");
    throw new CliError(
      `There is no service ${JSON.stringify(idOrName)} in the namespace ${namespace}: \`${list}\` lists all services.`,
    );
  }
  if (others.length === 0) return service;
  const ids = services.map(({ id, organizationId }) => `  ${id}  (organization ${organizationId})`);
  throw new CliError(
    `${ids.length} services have the name ${JSON.stringify(idOrName)}. Specify one of these IDs:\n${ids.join("\n")}`,
  );
}
