import { abortable } from "../../kube/abortable.ts";
import type { KubeClient } from "../../kube/client.ts";
import { isForbiddenByRbac, isWithoutRoles, KubeApiError } from "../../kube/errors.ts";
import { isUnmanaged } from "../../kube/managers.ts";
import { collectionPath } from "../../kube/paths.ts";
import { listOf } from "../../kube/protobuf/envelope.ts";
import type { Workload } from "../../kube/workloads.ts";
import { type Clock, pause } from "../../runtime/clock.ts";
import { listPages } from "../../runtime/list-pages.ts";
import { UnreadableObjectError } from "../../runtime/reflector.ts";
import { RetryBackoff } from "../../runtime/retry-backoff.ts";
import type { ControllerSettings } from "../../settings/controller.ts";
import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../names.ts";
import { isUnreleased, lastServiceOf, type PipeView } from "./pipe-view.ts";
import { KINDS, PIPE_KINDS, type PipeKind } from "./workloads/kinds.ts";

/**
 * Select all workloads that are not pipes. A selector has no "or", so this takes two lists. Their order matters: a
 * workload that has only the label of the type, and loses it between the lists, is in the first one. In the other
 * order, it would be in neither.
 */
const SELECTORS = [`${TYPE_LABEL}=${DATABASE_TYPE},!${SERVICE_LABEL}`, `${TYPE_LABEL}!=${DATABASE_TYPE}`];

export interface SearchOptions extends Pick<ControllerSettings, "pipeNamespaces"> {
  readonly client: Pick<KubeClient, "json">;
  readonly clock: Pick<Clock, "now" | "monotonic" | "after">;
  /** A problem with the API server, already being retried, or an `UnreadableObjectError`. */
  readonly onProblem: (problem: unknown) => void;
}

/**
 * Least time between the starts of two searches. After an outage, the watches of many namespaces may each have
 * missed deletions.
 */
const LEAST_MS = 10_000;

/**
 * Finds the workloads that lost a label of a pipe during a commit, if no watch of this process showed that. No later
 * event shows them, so nothing would release them. A search lists all workloads that are not pipes, page by page.
 */
export function searchDeparted(
  { client, clock, pipeNamespaces, onProblem }: SearchOptions,
  onFound: (pipe: PipeView) => void,
) {
  const namespaces = pipeNamespaces.length > 0 ? pipeNamespaces : [undefined];
  const backoff = new RetryBackoff(clock);
  let requested = Promise.withResolvers<void>();

  /** @returns nothing, so that no workloads are kept in memory */
  const read = (kind: PipeKind, workload: Workload): readonly never[] => {
    const { name, namespace, managedFields } = workload.metadata;
    try {
      const pipe = KINDS[kind].toView(workload);
      // Most of these have never been pipes, so the number in a partition alone does not show whose hold it is.
      const isOurs = pipe.lastRollout !== undefined || !isUnmanaged(managedFields);
      if (isUnreleased(pipe) && isOurs) onFound({ ...pipe, serviceId: lastServiceOf(pipe) });
    } catch (cause) {
      const problem = `the ${kind} ${namespace}/${name} cannot be read`;
      onProblem(new UnreadableObjectError(problem, { cause }));
    }
    return [];
  };

  const searchList = async (kind: PipeKind, path: string, labelSelector: string, signal: AbortSignal) => {
    const { message } = KINDS[kind].resource;
    const request = { path, query: { labelSelector }, message: message && listOf(message), signal };
    while (!signal.aborted) {
      try {
        await listPages(client, request, (workload: Workload) => read(kind, workload));
        return;
      } catch (error) {
        if (signal.aborted || isRefused(error)) return;
        onProblem(error);
        const leastMs = error instanceof KubeApiError ? error.retryAfterMs : 0;
        await pause(clock, backoff.next(leastMs), signal);
      }
    }
  };

  const search = async (signal: AbortSignal) => {
    for (const namespace of namespaces) {
      for (const kind of PIPE_KINDS) {
        const path = collectionPath(KINDS[kind].resource, namespace);
        for (const selector of SELECTORS) await searchList(kind, path, selector, signal);
      }
    }
  };

  return {
    /** Call it when the watches have missed something. */
    request: () => requested.resolve(),

    /** Searches now, and after each request, until the signal is aborted. */
    async run(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        const nextAtMs = clock.monotonic() + LEAST_MS;
        requested = Promise.withResolvers();
        await search(signal);
        await abortable(requested.promise, signal).catch(() => undefined);
        await pause(clock, Math.max(0, nextAtMs - clock.monotonic()), signal);
      }
    },
  };
}

/** The informer of this kind reports the missing permission, without which no workload could be released. */
function isRefused(error: unknown): boolean {
  return isForbiddenByRbac(error) && !isWithoutRoles(error);
}
