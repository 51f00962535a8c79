import type { PipeScalingSpec } from "../../crd/pipe-scaling.ts";
import { allSizes, type Size, sameSize } from "../../domain/size.ts";
import { nameOf } from "../observe/pipe-kind.ts";
import type { PipeView } from "../observe/pipe-view.ts";
import type { PodView } from "../observe/pod-view.ts";
import { sizeOf } from "../observe/resources.ts";
import { specOf } from "./adopted-size.ts";

/** A size that the controller applied to a pipe. */
interface Applied {
  /** Absent if the pipe's resources make no size any more. */
  readonly size: Size | undefined;
  readonly atMs: number;
}

type Pods = ReadonlyMap<string, readonly PodView[]>;

/**
 * Returns the spec for a PipeScaling that was deleted. A deletion must not resize anything, so the spec has the newest
 * size that the controller gave to a pipe or a pod of the service. It is suspended if another one has another size,
 * because nothing shows whether it was suspended before.
 *
 * @param pipes all pipes of the service
 * @param pods of each pipe, by its name
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

/** The templates of these pods may have another size. Pods of a pipe that moved in were resized for its earlier service. */
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

/** @returns true if something shows that the controller resized a pipe of the service */
export function wasResized(serviceId: string, pipes: readonly PipeView[]): boolean {
  return pipes.some((pipe) => appliedTo(pipe, serviceId) !== undefined);
}

/** The API server rejects a spec with any other size, for example one after another writer changed only the CPU. */
function isRequestable(size: Size): boolean {
  return allSizes().some((each) => sameSize(each, size));
}

/** If another writer removed the annotation of the last rollout, only the current size is known. */
function appliedTo({ lastRollout, resizedAtMs, size }: PipeView, serviceId: string): Applied | undefined {
  // A pipe that moved in from another service has the size of that one.
  if (lastRollout?.serviceId === serviceId) return { size: lastRollout.size, atMs: lastRollout.startedAtMs };
  return resizedAtMs === undefined ? undefined : { size, atMs: resizedAtMs };
}
