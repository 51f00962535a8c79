import { type PipeScalingView, toPipeScalingView } from "../../controller/observe/pipe-scaling-view.ts";
import type { PipeScaling } from "../../crd/pipe-scaling.ts";
import type { KubeClient } from "../../kube/client.ts";
import { isCode } from "../../kube/errors.ts";
import type { Deployment, KubeObject } from "../../kube/objects.ts";
import type { Service } from "../../records/service.ts";
import { CliError } from "../failure.ts";
import { listAll, type Selection } from "./list.ts";
import type { WatchedPipe } from "./pipe-lines.ts";
import { pipesOf, scalingsOf, watchedPipeOf } from "./service-kinds.ts";

/** What a service's namespace holds of it at one moment; `undefined` for what may not be read. */
export interface Look {
  readonly scaling: PipeScalingView | undefined;
  readonly pipes: readonly WatchedPipe[] | undefined;
}

/** @throws CliError where the cluster has no PipeScalings at all, and KubeApiError where they may not be read */
export async function lookAt(client: KubeClient, service: Service, signal: AbortSignal): Promise<Look> {
  const list = <O extends KubeObject>(selection: Selection) => listAll<O>(client, selection, signal);
  const [scalings, deployments] = await Promise.all([
    list<KubeObject & PipeScaling>(scalingsOf(service)).catch(withoutDefinition),
    unlessForbidden(list<Deployment>(pipesOf(service))),
  ]);
  const [scaling] = scalings.map(toPipeScalingView);
  return {
    scaling,
    pipes: deployments?.map(watchedPipeOf).filter(({ isBeingDeleted }) => !isBeingDeleted),
  };
}

/** In place of a list of PipeScalings. */
export function withoutDefinition(error: unknown): never {
  if (!isCode(error, 404)) throw error;
  throw new CliError(
    "The cluster does not know PipeScalings: install the operator first, or at least its CustomResourceDefinition (crds/).",
    { cause: error },
  );
}

export async function unlessForbidden<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (isCode(error, 403)) return undefined;
    throw error;
  }
}
