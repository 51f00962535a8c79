import type { KubeClient } from "../../kube/client.ts";
import { isForbiddenByRbac, isWithoutRoles, KubeApiError } from "../../kube/errors.ts";
import { collectionPath } from "../../kube/paths.ts";
import { listOf } from "../../kube/protobuf/envelope.ts";
import type { Workload } from "../../kube/workloads.ts";
import { type Clock, pause } from "../../runtime/clock.ts";
import { listPages } from "../../runtime/list-pages.ts";
import { UnreadableObjectError } from "../../runtime/reflector.ts";
import { RetryBackoff } from "../../runtime/retry-backoff.ts";
import type { ControllerSettings } from "../../settings/controller.ts";
import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../names.ts";
import { PIPE_KINDS, type PipeKind } from "./pipe-kind.ts";
import type { PipeView } from "./pipe-view.ts";
import { KINDS } from "./workloads/kinds.ts";

/** All workloads that are no pipes. A selector has no "or", so they take two lists. */
const SELECTORS = [`${TYPE_LABEL}!=${DATABASE_TYPE}`, `${TYPE_LABEL}=${DATABASE_TYPE},!${SERVICE_LABEL}`];

export interface SearchOptions extends Pick<ControllerSettings, "pipeNamespaces"> {
  readonly client: Pick<KubeClient, "json">;
  readonly clock: Pick<Clock, "now" | "monotonic" | "after">;
  /** A problem with the API server, already being retried, or an `UnreadableObjectError`. */
  readonly onProblem: (problem: unknown) => void;
}

/**
 * Finds the workloads that lost the labels of a pipe during a commit while no controller saw it. No watch shows them, so
 * they would stay paused. Resolves when all workloads that are no pipes have been listed once, or at the abort.
 */
export async function findDeparted(
  options: SearchOptions,
  onFound: (pipe: PipeView) => void,
  signal: AbortSignal,
): Promise<void> {
  const { pipeNamespaces } = options;
  const namespaces = pipeNamespaces.length > 0 ? pipeNamespaces : [undefined];
  const backoff = new RetryBackoff(options.clock);
  for (const namespace of namespaces) {
    for (const kind of PIPE_KINDS) {
      for (const labelSelector of SELECTORS)
        await searchList({ ...options, namespace, kind, labelSelector, backoff }, onFound, signal);
    }
  }
}

interface ListToSearch extends SearchOptions {
  readonly namespace: string | undefined;
  readonly kind: PipeKind;
  readonly labelSelector: string;
  readonly backoff: RetryBackoff;
}

async function searchList(
  { client, clock, onProblem, namespace, kind, labelSelector, backoff }: ListToSearch,
  onFound: (pipe: PipeView) => void,
  signal: AbortSignal,
): Promise<void> {
  const { resource, toView } = KINDS[kind];
  const path = collectionPath(resource, namespace);
  const request = { path, query: { labelSelector }, message: resource.message && listOf(resource.message) };
  const search = (workload: Workload): readonly never[] => {
    try {
      const pipe = toView(workload);
      // Its labels may name another service by now, or none.
      const serviceId = pipe.lastRollout?.serviceId ?? pipe.serviceId;
      if (pipe.isPausedForCommit) onFound({ ...pipe, serviceId });
    } catch (cause) {
      const { name, namespace: of } = workload.metadata;
      onProblem(new UnreadableObjectError(`${path}: ${of}/${name} cannot be read`, { cause }));
    }
    return [];
  };
  while (!signal.aborted) {
    try {
      await listPages(client, { ...request, signal }, search);
      return;
    } catch (error) {
      if (signal.aborted) return;
      // The informer of this kind reports the missing permission. Without it, the controller has paused nothing.
      if (isForbiddenByRbac(error) && !isWithoutRoles(error)) return;
      onProblem(error);
      await pause(clock, backoff.next(error instanceof KubeApiError ? error.retryAfterMs : 0), signal);
    }
  }
}
