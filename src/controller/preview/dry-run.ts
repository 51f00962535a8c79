import { abortable } from "../../kube/abortable.ts";
import { KubeClient } from "../../kube/client.ts";
import { connect } from "../../kube/connection.ts";
import { isServed } from "../../kube/discovery.ts";
import { isCode, isForbiddenByRbac } from "../../kube/errors.ts";
import { VERTICAL_AUTOSCALERS } from "../../kube/paths.ts";
import { checkReachable } from "../../kube/reachable.ts";
import { serviceIdOf } from "../../records/service.ts";
import { systemClock as clock } from "../../runtime/clock.ts";
import type { ControllerSettings } from "../../settings/controller.ts";
import type { RolloutPolicy } from "../../settings/rollout-policy.ts";
import { type Caches, createCaches, createInformers } from "../observe/caches.ts";
import { observe } from "../observe/observe.ts";
import { NO_WRITES } from "../observe/write-record.ts";
import { countRolling } from "../rollout/phase.ts";
import { TIMEOUTS } from "../timeouts.ts";
import { type PreviewedStep, preview } from "./preview.ts";

export interface DryRun {
  readonly steps: readonly PreviewedStep[];
  readonly services: number;
  readonly pipes: number;
}

type DryRunSettings = RolloutPolicy &
  Pick<ControllerSettings, "kubeconfig" | "namespace" | "pipeNamespaces" | "tiers">;

/** Retry time while the server responds that it is busy, as it does for a new CRD. */
const PATIENCE_MS = 30_000;

/**
 * Computes what a controller with these settings would do first if it started now. Reads the cluster once, writes
 * nothing, and does not acquire the lease.
 *
 * @throws Error with a sentence for the user when the cluster cannot be read
 */
export async function dryRun(settings: DryRunSettings, signal: AbortSignal): Promise<DryRun> {
  const caches = createCaches();
  const client = new KubeClient(await connect(settings.kubeconfig, signal));
  const ending = new AbortController();
  const failed = Promise.withResolvers<never>();
  const stopping = AbortSignal.any([signal, ending.signal]);
  let watching: Promise<unknown> | undefined;
  try {
    await checkReachable(client, stopping);
    const verticalAutoscalers = await isServed(client, VERTICAL_AUTOSCALERS, stopping);
    const patientUntil = clock.monotonic() + PATIENCE_MS;
    const onProblem = (problem: unknown) => {
      // Without the permission for pods, pipes are rolled out. Without that for StatefulSets, these are no pipes.
      const { pods, statefulSets } = informers;
      const isMissed = pods.problem !== undefined || statefulSets.problem !== undefined;
      if (isForbiddenByRbac(problem) && isMissed) return;
      if (!isCode(problem, 429) || clock.monotonic() > patientUntil) failed.reject(problem);
    };
    const options = { ...settings, client, clock, verticalAutoscalers, onProblem };
    const informers = createInformers(caches, { ...options, onPodsGranted: () => undefined });
    watching = Promise.all(informers.all.map((each) => each.run(stopping)));
    const synced = Promise.all(informers.all.map((each) => each.synced));
    await abortable(Promise.race([synced, failed.promise]), signal);
    return previewAll(caches, settings, informers.pods.problem, clock.now());
  } finally {
    ending.abort();
    await watching;
    await client.close();
  }
}

function previewAll(
  caches: Caches,
  settings: DryRunSettings,
  podsProblem: string | undefined,
  nowMs: number,
): DryRun {
  const rolling = countRolling(caches, { nowMs, policy: settings });
  let overallFree = Math.max(0, settings.maxConcurrentRollouts - rolling);
  const sources = {
    caches,
    writes: NO_WRITES,
    podsProblem,
    leadingSinceMs: nowMs,
    deletedScalings: { recreation: () => ({ atMs: nowMs, isSeen: false }) },
    departed: { of: () => [] },
    endedPods: { lastEndedAtMs: () => 0 },
  };
  // The preview is of the pipes that have their labels now.
  const scope = { ...settings, policy: settings, timeouts: { ...TIMEOUTS, adoptMs: 0 } };
  const options = { policy: settings, commitsFree: 0, makesDryRuns: false, isEnding: false };
  const serviceIds = serviceIdsIn(caches);
  const steps = serviceIds.flatMap((serviceId) => {
    const first = preview(observe(sources, scope, serviceId, nowMs), { ...options, overallFree });
    overallFree = Math.max(0, overallFree - first.begun);
    return first.steps;
  });
  return { steps, services: serviceIds.length, pipes: caches.pipes.size };
}

/** Returns all keys that the controller would enqueue at startup, in a stable order. */
function serviceIdsIn({ services, scalings, pipes }: Caches): string[] {
  const ids = [
    ...[...services.values()].flatMap(({ metadata }) => serviceIdOf(metadata.name) ?? []),
    ...[...scalings.values()].map(({ metadata }) => metadata.name),
    ...[...pipes.values()].map(({ serviceId }) => serviceId),
  ];
  return [...new Set(ids)].sort();
}
