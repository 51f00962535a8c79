import type { FailureReason } from "../../crd/reasons.ts";
import type { ResizeStrategy } from "../../domain/resize-strategy.ts";
import type { RolloutWindow } from "../../domain/rollout-window.ts";
import type { Tier, Tiers } from "../../domain/tier.ts";
import { type Organization, organizationConfigMapName } from "../../records/organization.ts";
import { type Service, serviceConfigMapName } from "../../records/service.ts";
import type { Store } from "../../runtime/store.ts";
import type { RolloutPolicy } from "../../settings/rollout-policy.ts";
import type { Timeouts } from "../timeouts.ts";
import { type AutoscalerView, effectOn } from "./autoscaler-view.ts";
import { BY_PIPE, BY_SERVICE, type Cached, type Caches } from "./caches.ts";
import type { DeletedScalings, DepartedPipes, EndedPod, EndedPods } from "./deleted-objects.ts";
import { appliedSize, type LastRollout } from "./last-rollout.ts";
import type { PipeScalingView } from "./pipe-scaling-view.ts";
import { containerNameOf, isAnnouncedBefore, type PipeView, presentAllotment } from "./pipe-view.ts";
import type { PodView } from "./pod-view.ts";
import { formatAllotment } from "./resources.ts";
import { keyOfPipe, nameOf } from "./workloads/kinds.ts";
import type { WriteRecords } from "./write-record.ts";

/** The reason why no pipe of a service can be resized. */
export interface Obstacle {
  readonly reason: Extract<FailureReason, `Unknown${string}` | "MalformedRecord">;
  readonly message: string;
}

export type Found<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly obstacle: Obstacle };

/** The state of one service at one moment. Decisions depend only on this and on their options. */
export interface Snapshot {
  readonly serviceId: string;
  readonly nowMs: number;
  readonly timeouts: Timeouts;
  /** Namespace of the service's pipes, if its record is readable. */
  readonly namespace: string | undefined;
  readonly tier: Found<Tier>;
  /**
   * The window of the service, or else of its organization. Restarts, or all resizes, begin only within it; `undefined`
   * if they may begin at any time.
   */
  readonly rolloutWindow: RolloutWindow | undefined;
  /** The PipeScaling in the service's namespace. */
  readonly scaling: PipeScalingView | undefined;
  /**
   * A deleted PipeScaling is not created again before `atMs`, in milliseconds since 1970. `isSeen`: this process saw
   * the deletion.
   */
  readonly recreation: { readonly atMs: number; readonly isSeen: boolean };
  /** PipeScalings with the ID of this service outside its namespace, or while it has no readable record. */
  readonly unmanaged: readonly PipeScalingView[];
  /** Pipes with the label of this service outside its namespace, or while it has no readable record. */
  readonly orphans: readonly PipeView[];
  /** Sorted by name. Only pipes in the service's namespace, because labels in other namespaces are not trusted. */
  readonly pipes: readonly PipeView[];
  /** Former pipes of this service that the controller still has to release after a commit (isUnreleased). */
  readonly departed: readonly PipeView[];
  /** The pods of each pipe, by its name (nameOf). */
  readonly pods: ReadonlyMap<string, readonly PodView[]>;
  /** The last pod of each pipe that was seen to end, by name of the pipe (nameOf). */
  readonly endedPods: ReadonlyMap<string, EndedPod | undefined>;
  /** The message of the API server if the controller may not watch pods; `undefined` if it may. */
  readonly podsProblem: string | undefined;
  /** The message of the API server if the controller may not watch StatefulSets; `undefined` if it may. */
  readonly statefulSetsProblem: string | undefined;
  /** When this process began to write, in milliseconds since 1970. */
  readonly leadingSinceMs: number;
  /** The last writes of this process to each object. */
  readonly writes: WriteRecords;
  /** How pipes are resized: in place, by a rollout, or in place if possible and otherwise by a rollout. */
  readonly strategy: ResizeStrategy;
  /** Autoscalers that affect the pipe container, by name of the pipe. */
  readonly autoscalers: ReadonlyMap<string, readonly AutoscalerView[]>;
}

export interface Scope {
  /** Namespace of the records. */
  readonly namespace: string;
  readonly tiers: Tiers;
  readonly policy: RolloutPolicy;
  readonly timeouts: Timeouts;
}

/** The sources of a snapshot. */
export interface Sources {
  readonly caches: Caches;
  readonly writes: WriteRecords;
  readonly deletedScalings: Pick<DeletedScalings, "recreation">;
  readonly departed: Pick<DepartedPipes, "of">;
  readonly endedPods: Pick<EndedPods, "last">;
  readonly podsProblem: (namespace: string | undefined) => string | undefined;
  readonly statefulSetsProblem: (namespace: string | undefined) => string | undefined;
  readonly leadingSinceMs: number;
}

/** Takes a snapshot of a service. */
export function observe(sources: Sources, scope: Scope, serviceId: string, nowMs: number): Snapshot {
  const { caches, writes, deletedScalings, departed, endedPods, podsProblem, leadingSinceMs } = sources;
  const service = findService(caches, scope, serviceId);
  const organization = service.ok ? findOrganization(caches, scope, service.value) : service;
  const namespace = valueIn(service)?.namespace;
  const scalings = caches.scalings.by(BY_SERVICE, serviceId);
  const scaling = scalings.find((each) => each.metadata.namespace === namespace);
  const labelled = caches.pipes.by(BY_SERVICE, serviceId).filter((pipe) => !pipe.isBeingDeleted);
  const pipes = labelled
    .filter(({ metadata }) => metadata.namespace === namespace)
    .sort(byName)
    .map((pipe) => withLastRollout(pipe, writes));
  const problem = podsProblem(namespace);
  // Those in the cache may have changed since the permission was lost.
  const podsOf = (pipe: PipeView) => (problem === undefined ? caches.pods.by(BY_PIPE, keyOfPipe(pipe)) : []);
  return {
    serviceId,
    nowMs,
    timeouts: scope.timeouts,
    namespace,
    tier: organization.ok ? tierOf(organization.value, scope.tiers) : organization,
    rolloutWindow: valueIn(service)?.rolloutWindow ?? valueIn(organization)?.rolloutWindow,
    scaling,
    recreation: deletedScalings.recreation(namespace ?? "", serviceId),
    unmanaged: scalings.filter((each) => each.metadata.namespace !== namespace),
    orphans: labelled.filter(({ metadata }) => metadata.namespace !== namespace),
    pipes,
    departed: departed.of(serviceId),
    pods: new Map(pipes.map((pipe) => [nameOf(pipe), podsOf(pipe)])),
    endedPods: new Map(pipes.map((pipe) => [nameOf(pipe), endedPods.last(pipe)])),
    podsProblem: problem,
    statefulSetsProblem: sources.statefulSetsProblem(namespace),
    leadingSinceMs,
    writes,
    strategy: scaling?.spec.strategy ?? scope.policy.resizeStrategy,
    autoscalers: findAutoscalers(caches, pipes),
  };
}

/** The Deployment comes before the StatefulSet with the same name. */
function byName(a: PipeView, b: PipeView): number {
  const [nameA, nameB] = [a.metadata.name, b.metadata.name];
  if (nameA === nameB) return nameOf(a).length - nameOf(b).length;
  return nameA < nameB ? -1 : 1;
}

/**
 * If another writer, such as a webhook, removed the annotation, takes the last rollout from the memory of writes,
 * unless the template has another size now.
 */
export function withLastRollout(pipe: PipeView, writes: WriteRecords): PipeView {
  const { lastRollout } = pipe.lastRollout ? {} : (writes.lastAnnotation(pipe.metadata.uid) ?? {});
  if (!lastRollout) return pipe;
  if (!isApplied(lastRollout, pipe)) return pipe;
  const { rollout } = pipe;
  // The view was made without the annotation, so a condition Progressing of an earlier rollout may have counted for
  // this one.
  const isAnnounced = !isAnnouncedBefore(rollout.progressedAtS, lastRollout);
  const isComplete = rollout.isComplete && (rollout.isAvailable || isAnnounced);
  return { ...pipe, lastRollout, rollout: { ...rollout, isComplete } };
}

function isApplied(lastRollout: LastRollout, pipe: PipeView): boolean {
  const [applied, present] = [appliedSize(lastRollout), presentAllotment(pipe)];
  return (
    applied !== undefined && present !== undefined && formatAllotment(applied) === formatAllotment(present)
  );
}

/** Keyed by name of the pipe. */
function findAutoscalers(caches: Caches, pipes: readonly PipeView[]): Snapshot["autoscalers"] {
  return new Map(
    pipes.flatMap((pipe): [string, readonly AutoscalerView[]][] => {
      const container = containerNameOf(pipe);
      const found = caches.autoscalers.flatMap((store) => store.by(BY_PIPE, keyOfPipe(pipe)));
      const acting = found.filter((autoscaler) => effectOn(autoscaler, container) !== "none");
      return acting.length === 0 ? [] : [[nameOf(pipe), acting]];
    }),
  );
}

function findService({ services }: Caches, { namespace }: Scope, serviceId: string): Found<Service> {
  const name = serviceConfigMapName(serviceId);
  return find(services, { namespace, name }, "UnknownService", `service ${serviceId}`);
}

function findOrganization(
  { organizations }: Caches,
  { namespace }: Scope,
  { organizationId }: Service,
): Found<Organization> {
  const name = organizationConfigMapName(organizationId);
  return find(organizations, { namespace, name }, "UnknownOrganization", `organization ${organizationId}`);
}

/** @param what kind and ID of the record, for people */
function find<T>(
  store: Store<Cached<T>>,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  unknown: Obstacle["reason"],
  what: string,
): Found<T> {
  const cached = store.get(`${namespace}/${name}`);
  if (!cached)
    return obstacle(unknown, `The ${what} does not exist: there is no ConfigMap ${name} in ${namespace}.`);
  if (cached.record.ok) return cached.record;
  return obstacle("MalformedRecord", `The ConfigMap ${name} is malformed: ${cached.record.problem}.`);
}

function tierOf(organization: Organization, tiers: Tiers): Snapshot["tier"] {
  const tier = tiers.get(organization.tier);
  if (tier) return { ok: true, value: tier };
  const known = [...tiers.keys()].join(", ");
  const message = `The organization's tier is "${organization.tier}"; the tiers are ${known}.`;
  return obstacle("UnknownTier", message);
}

function obstacle(reason: Obstacle["reason"], message: string) {
  return { ok: false, obstacle: { reason, message } } as const;
}

function valueIn<T>(found: Found<T>): T | undefined {
  return found.ok ? found.value : undefined;
}
