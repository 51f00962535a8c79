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
import { PIPE_KINDS, type PipeKind } from "./pipe-kind.ts";
import { isUnreleased, lastServiceOf, type PipeView } from "./pipe-view.ts";
import { KINDS } from "./workloads/kinds.ts";

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
export class DepartedSearch {
  readonly #options: SearchOptions;
  readonly #onFound: (pipe: PipeView) => void;
  readonly #backoff: RetryBackoff;
  #requested = Promise.withResolvers<void>();

  constructor(options: SearchOptions, onFound: (pipe: PipeView) => void) {
    this.#options = options;
    this.#onFound = onFound;
    this.#backoff = new RetryBackoff(options.clock);
  }

  /** Call it when the watches have missed something. */
  request(): void {
    this.#requested.resolve();
  }

  /** Searches now, and after each request, until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const aborted = new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    const { clock } = this.#options;
    while (!signal.aborted) {
      const nextAtMs = clock.monotonic() + LEAST_MS;
      this.#requested = Promise.withResolvers();
      await this.#search(signal);
      await Promise.race([this.#requested.promise, aborted]);
      await pause(clock, Math.max(0, nextAtMs - clock.monotonic()), signal);
    }
  }

  async #search(signal: AbortSignal): Promise<void> {
    const { pipeNamespaces } = this.#options;
    for (const namespace of pipeNamespaces.length > 0 ? pipeNamespaces : [undefined]) {
      for (const kind of PIPE_KINDS) {
        for (const labelSelector of SELECTORS)
          await this.#searchList({ namespace, kind, labelSelector }, signal);
      }
    }
  }

  async #searchList({ namespace, kind, labelSelector }: ListToSearch, signal: AbortSignal): Promise<void> {
    const { client, clock, onProblem } = this.#options;
    const { resource } = KINDS[kind];
    const path = collectionPath(resource, namespace);
    const message = resource.message && listOf(resource.message);
    const request = { path, query: { labelSelector }, message, signal };
    while (!signal.aborted) {
      try {
        await listPages(client, request, (workload: Workload) => this.#read(kind, workload));
        return;
      } catch (error) {
        if (signal.aborted) return;
        // The informer of this kind reports the missing permission, without which no workload could be released.
        if (isForbiddenByRbac(error) && !isWithoutRoles(error)) return;
        onProblem(error);
        const leastMs = error instanceof KubeApiError ? error.retryAfterMs : 0;
        await pause(clock, this.#backoff.next(leastMs), signal);
      }
    }
  }

  /** @returns nothing, so that no workloads are kept in memory */
  #read(kind: PipeKind, workload: Workload): readonly never[] {
    const { name, namespace, managedFields } = workload.metadata;
    try {
      const pipe = KINDS[kind].toView(workload);
      // Most of these have never been pipes, so the number in a partition alone does not show whose hold it is.
      const isOurs = pipe.lastRollout !== undefined || !isUnmanaged(managedFields);
      if (isUnreleased(pipe) && isOurs) this.#onFound({ ...pipe, serviceId: lastServiceOf(pipe) });
    } catch (cause) {
      const problem = `the ${kind} ${namespace}/${name} cannot be read`;
      this.#options.onProblem(new UnreadableObjectError(problem, { cause }));
    }
    return [];
  }
}

interface ListToSearch {
  readonly namespace: string | undefined;
  readonly kind: PipeKind;
  readonly labelSelector: string;
}
