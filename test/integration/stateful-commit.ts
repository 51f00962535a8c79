import { setTimeout as delay } from "node:timers/promises";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { expect } from "vitest";
import { HOLD } from "../../src/controller/observe/workloads/stateful-set.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../src/crd/names.ts";
import type { StatefulSet } from "../../src/kube/workloads.ts";
import type { ProxiedRequest } from "./faults/faulty-proxy.ts";
import { type Loaders, partitionIn, templateCpu } from "./stateful-loader.ts";

/** The writes of a commit, in their order. The last one leaves the partition to the owner. */
export const COMMIT_WRITES = ["hold", "label", "release", "leave"] as const;

export type CommitWrite = (typeof COMMIT_WRITES)[number];

/** Names the writes of the commit of one StatefulSet, from its first one on. */
export function commitWrites(): (
  request: Pick<ProxiedRequest, "verb" | "resource" | "url">,
) => CommitWrite | undefined {
  const ofSet: readonly CommitWrite[] = ["hold", "release", "leave"];
  let seen = 0;
  return ({ verb, resource, url }) => {
    if (verb !== "patch" || url.includes("dryRun")) return undefined;
    if (resource === "pods") return "label";
    if (resource !== "statefulsets") return undefined;
    seen += 1;
    return ofSet[seen - 1];
  };
}

export function isHeld(object: StatefulSet): boolean {
  return (partitionIn(object) ?? 0) >= HOLD;
}

/** True if the controller still owns the partition that it has left to the owner. */
export function ownsPartition({ metadata }: StatefulSet): boolean {
  return (metadata.managedFields ?? []).some(
    ({ manager, fieldsV1 }) =>
      manager === CONTROLLER_FIELD_MANAGER && fieldsV1?.["f:spec"]?.["f:updateStrategy"] !== undefined,
  );
}

/**
 * Waits until the StatefulSet and its pods have this size, all pods count as updated, and the owner has its partition.
 *
 * @param owners the partition; `null` for the strategy OnDelete
 */
export async function committed(
  loaders: Loaders,
  cores: number,
  owners: number | null = 0,
): Promise<StatefulSet> {
  const isCommitted = async () => {
    const object = await loaders.read();
    const { status, spec, metadata } = object;
    const isSeen = status?.observedGeneration === metadata.generation;
    const isUpdated =
      status?.updatedReplicas === spec.replicas && status?.availableReplicas === spec.replicas;
    const isLeft = (partitionIn(object) ?? null) === owners && !ownsPartition(object);
    const sizes = await loaders.sizes();
    const isSized = [templateCpu(object), ...sizes].every((size) => size === `${cores}`);
    if (isSeen && isUpdated && isLeft && isSized && sizes.length === spec.replicas) return object;
    throw new Error(
      JSON.stringify({ status, partition: partitionIn(object), template: templateCpu(object), sizes }),
    );
  };
  return waitFor(isCommitted, { what: `the StatefulSet to have ${cores} cores`, timeoutMs: 90_000 });
}

/** Expects that nothing more happens to the StatefulSet and its pods. */
export async function expectQuiet(loaders: Loaders): Promise<void> {
  const versions = async () => {
    const { metadata } = await loaders.read();
    return [metadata.generation, ...(await loaders.uids())];
  };
  const before = await versions();
  await delay(1500);
  expect(await versions()).toEqual(before);
}
