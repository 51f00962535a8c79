import type { RolloutWindow } from "../../domain/rollout-window.ts";
import { sameSize } from "../../domain/size.ts";
import type { Tiers } from "../../domain/tier.ts";
import type { Organization } from "../../records/organization.ts";
import { organizationConfigMapName } from "../../records/organization.ts";
import { type Service, serviceConfigMapName } from "../../records/service.ts";
import { keyOf } from "../../runtime/store.ts";
import type { RolloutPolicy } from "../../settings/rollout-policy.ts";
import type { Timeouts } from "../timeouts.ts";
import { type AutoscalerView, actsOn } from "./autoscaler-view.ts";
import { BY_PIPE, BY_SERVICE, type Caches } from "./caches.ts";
import type { DeletedScalings } from "./deleted-scalings.ts";
import type { DeploymentView } from "./deployment-view.ts";
import { appliedSize } from "./last-rollout.ts";
import { unschedulableReason } from "./pending-pod-view.ts";
import { isSize } from "./resources.ts";
import { isAnnouncedBefore } from "./rollout-progress.ts";
import type { Obstacle, Snapshot } from "./snapshot.ts";
import type { Validation } from "./validation.ts";
import type { WriteRecord } from "./write-record.ts";

type Found<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly obstacle: Obstacle };

export interface Scope {
  /** Namespace of the records. */
  readonly namespace: string;
  readonly tiers: Tiers;
  /** For PipeScalings without one. */
  readonly policy: Pick<RolloutPolicy, "resizeStrategy">;
  readonly timeouts: Timeouts;
}

/** The sources of a snapshot. */
export interface Sources {
  readonly caches: Caches;
  /** The last write of this process to a Deployment, by its uid. */
  readonly writes: ReadonlyMap<string, WriteRecord>;
  /** The last dry run of each pipe, by uid of the Deployment. */
  readonly validations: ReadonlyMap<string, Validation>;
  readonly deletedScalings: Pick<DeletedScalings, "find" | "recreateAtMs">;
  /** The resizes in place that this process tries. */
  readonly inPlace: (pipes: readonly DeploymentView[]) => Snapshot["inPlace"];
  readonly failedSteps: Snapshot["failedSteps"];
  readonly stepsInFlight: Snapshot["stepsInFlight"];
}

/** Takes a snapshot of a service. */
export function observe(sources: Sources, scope: Scope, serviceId: string, nowMs: number): Snapshot {
  const { caches, writes, validations, deletedScalings, inPlace, failedSteps, stepsInFlight } = sources;
  const service = findService(caches, scope.namespace, serviceId);
  const namespace = service.ok ? service.value.namespace : undefined;
  const scalings = caches.scalings.by(BY_SERVICE, serviceId);
  const scaling = scalings.find((each) => each.metadata.namespace === namespace);
  const labelled = caches.pipes.by(BY_SERVICE, serviceId).filter((pipe) => !pipe.isBeingDeleted);
  const pipes = labelled
    .filter(({ metadata }) => metadata.namespace === namespace)
    .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
    .map((pipe) => withLastRollout(pipe, writes.get(pipe.metadata.uid)));
  return {
    serviceId,
    nowMs,
    timeouts: scope.timeouts,
    namespace,
    tier: service.ok ? findTier(caches, scope, service.value) : service,
    rolloutWindow: service.ok ? findWindow(caches, scope, service.value) : undefined,
    scaling,
    deleted: namespace === undefined ? undefined : deletedScalings.find(namespace, serviceId),
    recreateAtMs: namespace === undefined ? nowMs : deletedScalings.recreateAtMs(namespace, serviceId),
    foreign: scalings.filter((each) => each.metadata.namespace !== namespace),
    failures: scaling?.status.failures ?? [],
    orphans: labelled.filter(({ metadata }) => metadata.namespace !== namespace),
    pipes,
    writes,
    validations,
    strategy: scaling?.spec.strategy ?? scope.policy.resizeStrategy,
    inPlace: inPlace(pipes),
    failedSteps,
    stepsInFlight,
    unschedulable: findUnschedulable(caches, pipes),
    autoscalers: findAutoscalers(caches, pipes),
  };
}

/** If a webhook removes the annotation, the write history of this process still has the rollout. */
export function withLastRollout(pipe: DeploymentView, write: WriteRecord | undefined): DeploymentView {
  if (pipe.lastRollout || write?.outcome.type !== "done") return pipe;
  const { lastRollout } = write.outcome;
  const applied = appliedSize(lastRollout);
  if (!isSize(applied) || !sameSize(applied, pipe.size)) return pipe;
  const { rollout } = pipe;
  // Without the annotation, the view took the announcement of an earlier rollout for that of this one.
  const isAnnounced = !isAnnouncedBefore(rollout.progressedAtS, lastRollout);
  const isComplete = rollout.isComplete && (rollout.isAvailable || isAnnounced);
  return { ...pipe, lastRollout, rollout: { ...rollout, isComplete } };
}

/** The usual case, for every reconciliation. */
const NONE: ReadonlyMap<string, never> = new Map<string, never>();

/** Keyed by name of the pipe. */
function findUnschedulable(caches: Caches, pipes: readonly DeploymentView[]): ReadonlyMap<string, string> {
  if (caches.pendingPods.size === 0) return NONE;
  return new Map(
    pipes.flatMap((pipe): [string, string][] => {
      const reason = unschedulableReason(pipe, caches.pendingPods.by(BY_PIPE, keyOf(pipe)));
      return reason === undefined ? [] : [[pipe.metadata.name, reason]];
    }),
  );
}

/** Keyed by name of the pipe. */
function findAutoscalers(caches: Caches, pipes: readonly DeploymentView[]): Snapshot["autoscalers"] {
  const stores = caches.autoscalers.filter(({ size }) => size > 0);
  if (stores.length === 0) return NONE;
  return new Map(
    pipes.flatMap((pipe): [string, readonly AutoscalerView[]][] => {
      const container = "problem" in pipe.container ? "" : pipe.container.name;
      const found = stores.flatMap((store) => store.by(BY_PIPE, keyOf(pipe)));
      const acting = found.filter((autoscaler) => actsOn(autoscaler, container));
      return acting.length === 0 ? [] : [[pipe.metadata.name, acting]];
    }),
  );
}

function findService(caches: Caches, namespace: string, serviceId: string): Found<Service> {
  const name = serviceConfigMapName(serviceId);
  const cached = caches.services.get(`${namespace}/${name}`);
  if (!cached) {
    return obstacle(
      "UnknownService",
      `The service ${serviceId} does not exist: there is no ConfigMap ${name} in ${namespace}.`,
    );
  }
  return cached.record.ok ? cached.record : malformed(name, cached.record.problem);
}

function findTier(
  caches: Caches,
  { namespace, tiers }: { readonly namespace: string; readonly tiers: Tiers },
  service: Service,
): Snapshot["tier"] {
  const name = organizationConfigMapName(service.organizationId);
  const cached = caches.organizations.get(`${namespace}/${name}`);
  if (!cached) {
    return obstacle(
      "UnknownOrganization",
      `The organization ${service.organizationId} does not exist: there is no ConfigMap ${name} in ${namespace}.`,
    );
  }
  if (!cached.record.ok) return malformed(name, cached.record.problem);
  return tierOf(cached.record.value, tiers);
}

/** The window of the service takes precedence over that of its organization. */
function findWindow(
  caches: Caches,
  { namespace }: Scope,
  { rolloutWindow, organizationId }: Service,
): RolloutWindow | undefined {
  if (rolloutWindow) return rolloutWindow;
  const cached = caches.organizations.get(`${namespace}/${organizationConfigMapName(organizationId)}`);
  return cached?.record.ok ? cached.record.value.rolloutWindow : undefined;
}

function tierOf(organization: Organization, tiers: Tiers): Snapshot["tier"] {
  const tier = tiers.get(organization.tier);
  if (tier) return { ok: true, value: tier };
  const known = [...tiers.keys()].join(", ");
  return obstacle(
    "UnknownTier",
    `The organization's tier is "${organization.tier}"; the tiers are ${known}.`,
  );
}

function malformed(name: string, problem: string) {
  return obstacle("MalformedRecord", `The ConfigMap ${name} is malformed: ${problem}.`);
}

function obstacle(reason: Obstacle["reason"], message: string) {
  return { ok: false, obstacle: { reason, message } } as const;
}
