import { KubeClient } from "../../kube/client.ts";
import { connect } from "../../kube/connection.ts";
import { isCode } from "../../kube/errors.ts";
import { checkReachable } from "../../kube/reachable.ts";
import { serviceIdOf } from "../../records/service.ts";
import { systemClock } from "../../runtime/clock.ts";
import type { ControllerSettings } from "../../settings/controller.ts";
import type { RolloutPolicy } from "../../settings/rollout-policy.ts";
import { countRolling } from "../decide/rolling.ts";
import { hasVerticalAutoscalers } from "../observe/autoscaler-view.ts";
import { type Caches, createCaches, createInformers } from "../observe/caches.ts";
import { observe } from "../observe/observe.ts";
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
export async function dryRun(settings: DryRunSettings): Promise<DryRun> {
  const client = new KubeClient(await connect(settings.kubeconfig));
  const ending = new AbortController();
  const failed = Promise.withResolvers<never>();
  const caches = createCaches();
  const clock = systemClock;
  try {
    await checkReachable(client, ending.signal);
    const verticalAutoscalers = await hasVerticalAutoscalers(client);
    const patientUntil = clock.monotonic() + PATIENCE_MS;
    const onProblem = (problem: unknown) => {
      if (!isCode(problem, 429) || clock.monotonic() > patientUntil) failed.reject(problem);
    };
    const informers = createInformers(caches, { ...settings, client, clock, verticalAutoscalers, onProblem });
    const watching = Promise.all(informers.map((each) => each.run(ending.signal)));
    try {
      await Promise.race([Promise.all(informers.map((each) => each.synced)), failed.promise]);
    } finally {
      ending.abort();
      await watching;
    }
  } finally {
    await client.close();
  }
  return { ...stepsOf(caches, settings, clock.now()), pipes: caches.pipes.size };
}

function stepsOf(caches: Caches, settings: DryRunSettings, nowMs: number): Omit<DryRun, "pipes"> {
  const services = serviceIdsIn(caches);
  const rolling = countRolling(caches, { nowMs, policy: settings });
  let overallFree = Math.max(0, settings.maxConcurrentRollouts - rolling);
  const sources = {
    caches,
    writes: new Map(),
    validations: new Map(),
    deletedScalings: { find: () => undefined, recreateAtMs: () => nowMs },
    inPlace: () => new Map(),
    failedSteps: new Map(),
    stepsInFlight: new Set<string>(),
  };
  const steps: PreviewedStep[] = [];
  for (const serviceId of services) {
    const snapshot = observe(
      sources,
      { ...settings, policy: settings, timeouts: TIMEOUTS },
      serviceId,
      nowMs,
    );
    const first = preview(snapshot, {
      ...{ policy: settings, overallFree, freeCommits: 0, validatesFirst: false },
      // Those that the rate delays begin within seconds.
      freeBegins: Number.POSITIVE_INFINITY,
    });
    overallFree = Math.max(0, overallFree - first.begun);
    steps.push(...first.steps);
  }
  return { steps, services: services.length };
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
