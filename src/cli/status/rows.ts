import { describeSize, type Size } from "../../domain/size.ts";
import type { Organization } from "../../records/organization.ts";
import type { Row } from "../output.ts";
import type { PipeLine } from "../view/rescale-view.ts";
import { roughly } from "../view/time.ts";
import { currentCondition } from "./scaling-view.ts";
import type { ServiceStanding } from "./services.ts";

/** What is known of organizations, by their ids. */
export type Organizations = ReadonlyMap<string, Organization>;

/** For the table of all services. */
export function tableRow(standing: ServiceStanding, organizations: Organizations, nowMs: number): Row {
  const { service, view } = standing;
  const since = sinceOf(standing);
  return {
    name: service.name,
    organization: organizations.get(service.organizationId)?.name ?? service.organizationId,
    wanted: view.wanted && describeSize(view.wanted),
    effective: view.effective && describeSize(view.effective),
    pipes: view.pipes.total === 0 ? undefined : `${view.pipes.updated}/${view.pipes.total}`,
    state: view.state,
    since: since && roughly(nowMs - since.getTime()),
    reason: view.reason === "" ? undefined : view.reason,
  };
}

/** For programs: all that is known, sizes as the API has them. */
export function dataRow(standing: ServiceStanding, organizations: Organizations): Row {
  const { service, view, scaling } = standing;
  const organization = organizations.get(service.organizationId);
  return {
    id: service.id,
    name: service.name,
    namespace: service.namespace,
    organizationId: service.organizationId,
    organization: organization?.name,
    tier: organization?.tier,
    state: view.state,
    reason: view.reason,
    message: view.message,
    since: sinceOf(standing),
    wanted: sizeFields(view.wanted),
    source: view.from,
    effective: sizeFields(view.effective),
    pipes: view.pipes,
    requestId: view.requestId,
    startedAt: view.startedAt,
    completedAt: view.completedAt,
    retryAt: view.retryAt,
    conditions: scaling?.status.conditions ?? [],
    failures: scaling?.status.failures ?? [],
  };
}

export function pipeRow({ name, state, from, to, progress, why }: PipeLine): Row {
  return {
    name,
    state,
    from: sizeFields(from),
    to: sizeFields(to),
    progress,
    why: why === "" ? undefined : why,
  };
}

/** Since when it is as it is. */
export function sinceOf({ scaling }: ServiceStanding): Date | undefined {
  const condition = currentCondition(scaling?.status.conditions ?? []);
  return condition && new Date(condition.lastTransitionTime);
}

function sizeFields(size: Size | undefined): Row | undefined {
  return size && { replicaCpuMillicores: size.cpuMillicores, replicaMemoryGb: size.memoryGib };
}
