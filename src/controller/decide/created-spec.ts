import type { PipeScalingSpec } from "../../crd/pipe-scaling.ts";
import { allSizes, LARGEST, type Size, sameSize, smallestSizeWith } from "../../domain/size.ts";
import type { Tier } from "../../domain/tier.ts";
import { appliedSize, isOfOtherResources } from "../observe/last-rollout.ts";
import type { Snapshot } from "../observe/observe.ts";
import type { PipeView } from "../observe/pipe-view.ts";
import type { PodView } from "../observe/pod-view.ts";
import { type Amounts, amountsIn, isSize, sizeOf } from "../observe/resources.ts";
import { nameOf } from "../observe/workloads/kinds.ts";

/** A size in the annotation of a pipe, or one that the controller applied. */
interface Applied {
  /** Absent if the resources are not a valid size. */
  readonly size: Size | undefined;
  readonly atMs: number;
}

/** The pods of each pipe, by its name. */
type Pods = ReadonlyMap<string, readonly PodView[]>;

/**
 * Returns the spec for a PipeScaling that was deleted. A deletion must not resize anything, and nothing shows whether
 * the PipeScaling was suspended before.
 *
 * @returns `undefined` if nothing shows that the controller ever resized or adopted a pipe of the service, as at the
 *   first installation
 */
export function specForRecreation(
  serviceId: string,
  pipes: readonly PipeView[],
  pods: Pods = new Map(),
): PipeScalingSpec | undefined {
  const resized = resizedPods(pipes, pods);
  const applied = [...pipes.flatMap((pipe) => appliedTo(pipe, serviceId) ?? []), ...resized];
  if (applied.length === 0) return undefined;
  const [newest] = applied
    .toSorted((a, b) => b.atMs - a.atMs)
    .flatMap(({ size }) => (size && isRequestable(size) ? size : []));
  if (!newest) return { suspend: true };
  const isCommon = [...pipes, ...resized].every(({ size }) => sameSize(size, newest));
  return { ...specOf(newest), ...(isCommon ? {} : { suspend: true }) };
}

/**
 * Returns the sizes of resized pods, because their templates may have other sizes. A pipe whose pod template does not
 * name the service does not count: if it moved in, its pods were resized for its earlier service.
 */
function resizedPods(pipes: readonly PipeView[], pods: Pods): readonly Applied[] {
  const own = pipes.filter(({ templateProblem }) => templateProblem === undefined);
  return own.flatMap(({ kind, metadata, container }) =>
    (pods.get(nameOf({ kind, metadata })) ?? []).flatMap(
      ({ isActive, resizedAtMs, containers }): readonly Applied[] => {
        if (!isActive || resizedAtMs === undefined || "problem" in container) return [];
        const sized = containers.find(({ name }) => name === container.name);
        return sized ? [{ size: sizeOf(sized), atMs: resizedAtMs }] : [];
      },
    ),
  );
}

/** The API server rejects a spec with any other size, for example one after another writer changed only the CPU. */
function isRequestable(size: Size): boolean {
  return allSizes().some((each) => sameSize(each, size));
}

/** If another writer removed the annotation of the last rollout, only the current size is known. */
function appliedTo({ lastRollout, resizedAtMs, size }: PipeView, serviceId: string): Applied | undefined {
  // A pipe that moved in from another service has the size of that one.
  if (lastRollout?.serviceId !== serviceId)
    return resizedAtMs === undefined ? undefined : { size, atMs: resizedAtMs };
  // The controller gave it nothing, so the size of the service at that time counts only if there is no other.
  if (isOfOtherResources(lastRollout)) return { size: lastRollout.size, atMs: 0 };
  const applied = appliedSize(lastRollout);
  return { size: isSize(applied) ? applied : undefined, atMs: lastRollout.startedAtMs };
}

/**
 * Returns the spec of a PipeScaling for pipes that the controller has never resized. A pipe that already runs must lose
 * nothing. If no size is large enough for that, a person must decide what it loses.
 *
 * @param maximum the largest size that the platform offers
 * @param wasDeleted the service had a PipeScaling, whose deletion must not resize a pipe
 */
export function specForAdoption(
  pipes: readonly PipeView[],
  tier: Tier,
  maximum: Size,
  wasDeleted: boolean,
): PipeScalingSpec {
  const amounts = pipes.map(amountsOf);
  if (!amounts.some(hasAny)) return {};
  const held = amounts.map((each) => (hasAny(each) ? each : tier.defaultSize));
  const { cpuMillicores, memoryGib } = largestOf(held);
  const size = smallestSizeWith(cpuMillicores, memoryGib);
  const isOffered = size && size.cpuMillicores <= maximum.cpuMillicores;
  const isKept = isOffered && !(wasDeleted && pipes.some((pipe) => !sameSize(pipe.size, size)));
  return { ...specOf(size ?? LARGEST), ...(isKept ? {} : { suspend: true }) };
}

/**
 * When the PipeScaling of a new service may be created, in milliseconds since 1970. An upgrade of a chart labels its
 * pipes one after another, and the first one must not decide about the size of all. If every pipe is new, there is no
 * reason to wait. Clocks differ a little, so only a label from more than the whole wait in the future comes from a
 * wrong clock, which must not delay the creation.
 */
export function adoptableAtMs({ pipes, nowMs, timeouts }: Snapshot): number {
  if (pipes.every(isNew)) return 0;
  const beganAtMs = Math.min(...pipes.map((pipe) => pipe.labeledAtMs));
  return beganAtMs > nowMs + timeouts.adoptMs ? 0 : beganAtMs + timeouts.adoptMs;
}

/** The pipe got its labels when it was created, and needs its first size. */
function isNew(pipe: PipeView): boolean {
  return pipe.labeledAtMs <= pipe.createdAtMs && !hasAny(amountsOf(pipe));
}

/** A spec that asks for a size. */
export function specOf({ cpuMillicores, memoryGib }: Size): PipeScalingSpec {
  return { replicaCpuMillicores: cpuMillicores, replicaMemoryGb: memoryGib };
}

/** The amounts that a size of the pipe must hold. */
function amountsOf({ size, container, otherResources, cpuLimitMillicores }: PipeView): Amounts {
  if (size) return size;
  // While it is unclear which container is meant, the largest amounts of all containers count.
  const { resources = [] } = "problem" in container ? container : {};
  return largestOf(
    [...resources, ...(otherResources ? [otherResources] : [])].map((each) =>
      amountsIn(each, cpuLimitMillicores),
    ),
  );
}

function largestOf(amounts: readonly Amounts[]): Amounts {
  return {
    cpuMillicores: Math.max(0, ...amounts.map(({ cpuMillicores }) => cpuMillicores)),
    memoryGib: Math.max(0, ...amounts.map(({ memoryGib }) => memoryGib)),
  };
}

function hasAny({ cpuMillicores, memoryGib }: Amounts): boolean {
  return cpuMillicores > 0 || memoryGib > 0;
}
