import { isCounted } from "../../domain/rollout-plan.ts";
import { describeSize } from "../../domain/size.ts";
import { abortable } from "../../kube/abortable.ts";
import { KubeClient } from "../../kube/client.ts";
import { connect } from "../../kube/connection.ts";
import { isServed } from "../../kube/discovery.ts";
import { isCode, isForbiddenByRbac, type KubeApiError, serverMessage } from "../../kube/errors.ts";
import { VERTICAL_AUTOSCALERS } from "../../kube/paths.ts";
import { checkReachable } from "../../kube/reachable.ts";
import { serviceIdOf } from "../../records/service.ts";
import { systemClock as clock } from "../../runtime/clock.ts";
import { retryUntilReachable } from "../../runtime/retry-until-reachable.ts";
import type { ControllerSettings } from "../../settings/controller.ts";
import type { RolloutPolicy } from "../../settings/rollout-policy.ts";
import type { Action } from "../actions.ts";
import type { Assessment } from "../assessment.ts";
import { decide } from "../decide/decide.ts";
import type { DecideOptions, Sizing } from "../decide/decision.ts";
import { type Caches, createCaches, createInformers } from "../observe/caches.ts";
import type { Snapshot } from "../observe/observe.ts";
import { observe, type Sources } from "../observe/observe.ts";
import { requestedSize, toPipeScalingView } from "../observe/pipe-scaling-view.ts";
import { isSize } from "../observe/resources.ts";
import { findUnreadable } from "../observe/unreadable-namespaces.ts";
import { nameOf } from "../observe/workloads/kinds.ts";
import { NO_WRITES } from "../observe/write-record.ts";
import { waitingFor } from "../report/conditions.ts";
import { countRolling } from "../rollout/phase.ts";
import { TIMEOUTS } from "../timeouts.ts";

/** The next action of the controller for a pipe without the desired size, or for a service. */
export interface PreviewedStep {
  readonly service: string;
  readonly namespace: string | undefined;
  readonly pipe?: string;
  readonly size?: string | undefined;
  readonly desired?: string;
  readonly action: string;
}

export interface DryRun {
  readonly steps: readonly PreviewedStep[];
  readonly services: number;
  readonly pipes: number;
  /** The refusal for each namespace that a controller would leave out. */
  readonly unreadable: ReadonlyMap<string, KubeApiError>;
}

type DryRunSettings = RolloutPolicy &
  Pick<ControllerSettings, "kubeconfig" | "namespace" | "pipeNamespaces" | "tiers">;

/** Reads are retried for this long while the server responds with 429, as it does for a new CRD. */
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
    const isWorthWaiting = (problem: unknown) => isCode(problem, 429) && clock.monotonic() <= patientUntil;
    const onBusy = (problem: unknown) => {
      if (!isWorthWaiting(problem)) throw problem;
    };
    const find = () => findUnreadable(client, settings.pipeNamespaces, stopping);
    const unreadable = await retryUntilReachable(find, { clock, onProblem: onBusy }, stopping);
    const pipeNamespaces = settings.pipeNamespaces.filter((each) => !unreadable.has(each));
    const onProblem = (problem: unknown) => {
      // Without permission for pods, none is resized in place. Without it for StatefulSets, only Deployments are pipes.
      const isOptional = (message: string) => informers.optional.some((each) => each.problem === message);
      if (isForbiddenByRbac(problem) && isOptional(serverMessage(problem))) return;
      if (!isWorthWaiting(problem)) failed.reject(problem);
    };
    const options = { ...settings, pipeNamespaces, client, clock, verticalAutoscalers, onProblem };
    const informers = createInformers(caches, { ...options, onPermissionChange: () => undefined });
    watching = Promise.all(informers.all.map((each) => each.run(stopping)));
    const synced = Promise.all(informers.all.map((each) => each.synced));
    await abortable(Promise.race([synced, failed.promise]), signal);
    return { ...previewAll(caches, settings, informers, clock.now()), unreadable };
  } finally {
    ending.abort();
    await watching;
    await client.close();
  }
}

/** Previews all services in the caches. */
export function previewAll(
  caches: Caches,
  settings: DryRunSettings,
  { podsProblem, statefulSetsProblem }: Pick<Sources, "podsProblem" | "statefulSetsProblem">,
  nowMs: number,
): Omit<DryRun, "unreadable"> {
  const rolling = countRolling(caches, { nowMs, policy: settings });
  let overallFree = Math.max(0, settings.maxConcurrentRollouts - rolling);
  const sources = {
    caches,
    writes: NO_WRITES,
    podsProblem,
    statefulSetsProblem,
    leadingSinceMs: nowMs,
    deletedScalings: { recreation: () => ({ atMs: nowMs, isSeen: false }) },
    departed: { of: () => [] },
    endedPods: { last: () => undefined },
  };
  // The preview does not wait for more pipes to get their labels.
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

interface Preview {
  readonly steps: readonly PreviewedStep[];
  /** Number of rollouts that would start and count against the limit across all services. */
  readonly begun: number;
}

const UNBORN = { uid: "", resourceVersion: "", generation: 1 };

/**
 * Computes the first reconciliation of a service, if it ran now. There are no steps for pipes with the desired size.
 */
export function preview(snapshot: Snapshot, options: DecideOptions): Preview {
  const { serviceId: service, namespace, tier } = snapshot;
  const about = { service, namespace };
  const { actions, sizing, stranded = [] } = decide(snapshot, options);
  const creation = actions.find((action) => action.type === "create-pipe-scaling");
  if (creation) {
    const metadata = { ...UNBORN, name: service, namespace: creation.namespace };
    // The managers of its fields would show that its size was not requested, but it has none yet.
    const scaling = { ...toPipeScalingView({ metadata, spec: creation.spec }), isUnrequested: true };
    const size = requestedSize(scaling);
    const suspended = creation.spec.suspend ? ", suspended" : "";
    const action = `create its PipeScaling with ${size ? describeSize(size) : "no size of its own"}${suspended}`;
    // The pipes are decided with the PipeScaling that would be created.
    const { steps, begun } = preview({ ...snapshot, scaling }, options);
    return { steps: [{ ...about, action }, ...steps], begun };
  }
  const stepOf = ({ pipe }: Assessment, action: string): PreviewedStep => ({
    ...about,
    pipe: nameOf(pipe),
    size: pipe.size && describeSize(pipe.size),
    action,
  });
  const mended = stranded.flatMap((each) => {
    const action = writeFor(each, actions);
    return action === undefined ? [] : { pipe: each.pipe, step: stepOf(each, action) };
  });
  if (!sizing) {
    const left = tier.ok ? [] : [{ ...about, action: `leave it: ${tier.obstacle.message}` }];
    return { steps: [...left, ...mended.map(({ step }) => step)], begun: 0 };
  }
  const isSuspended = snapshot.scaling?.spec.suspend;
  const steps = sizing.assessments
    .filter(({ state }) => state !== "done")
    .map((each) => ({
      ...(mended.find(({ pipe }) => pipe === each.pipe)?.step ??
        stepOf(each, isSuspended ? "leave it: suspended" : actionFor(each, actions, sizing))),
      // After a lack of memory, pipes get another size than the requested one.
      desired: describeSize(each.subject.desired),
    }));
  return { steps, begun: sizing.assessments.filter((each) => takesPlace(each, actions)).length };
}

/** True if a rollout of the pipe would start that was not counted across all services before. */
function takesPlace({ pipe, phase }: Assessment, actions: readonly Action[]): boolean {
  const replacesPods = actions.some(
    (each) => (each.type === "resize" || each.type === "replace-pods") && each.pipe === pipe,
  );
  return isCounted({ replicas: pipe.replicas, replacesPods, phase });
}

function actionFor(assessment: Assessment, actions: readonly Action[], sizing: Sizing): string {
  if (actions.some(({ type }) => type === "confirm-generation"))
    return "confirm the generation of the PipeScaling first, because a pipe records a later one";
  return writeFor(assessment, actions) ?? nextFor(assessment, sizing);
}

/** The write that changes pods of a pipe now; `undefined` if there is none. */
function writeFor(assessment: Assessment, actions: readonly Action[]): string | undefined {
  const { pipe, failure, abandoned } = assessment;
  const own = actions.find((action) => "pipe" in action && action.pipe === pipe);
  switch (own?.type) {
    case "resize":
    case "resize-pod":
    case "replace-pods":
      return "resize it now";
    case "roll-back":
      return `roll it back to ${isSize(own.size) ? describeSize(own.size) : "its earlier resources"}: ${(abandoned ?? failure)?.message}`;
    case "return-pod":
      return `return its pod ${own.pod.metadata.name} to the size of its template${failure ? `: ${failure.message}` : ""}`;
    case "delete-pod":
      return `delete its pod ${own.pod.metadata.name}, ${own.isFailed ? "which has a size that failed and which Kubernetes does not replace" : "which is not ready and for which Kubernetes waits"}`;
  }
  return undefined;
}

/** The action for a pipe that gets no write now. */
function nextFor(assessment: Assessment, sizing: Sizing): string {
  const { state, failure, hindrance, activity, waitsForOwner, isReturned } = assessment;
  // A pipe whose pods have their previous size again is reported as one in progress.
  switch (state === "rolling" && isReturned ? "resized" : state) {
    case "done":
    case "rolling":
      return "wait for its rollout or resize";
    case "resized":
      return waitsForOwner || hindrance ? `leave it: ${activity}` : "let its template follow its pods";
    case "waiting":
      return whileWaiting(assessment, sizing);
    case "paused":
      return waitsForOwner ? `leave it: ${activity}` : "wait for its owner, who has paused its rollouts";
    case "failed":
    case "retrying":
    case "unsizable":
      return `leave it: ${failure?.message}`;
  }
}

function whileWaiting({ failure, hindrance, activity, isReturned }: Assessment, sizing: Sizing): string {
  const { outOfMemory, waitReason } = sizing;
  // A pipe that has its previous size again gets no other one before a request.
  if (isReturned) return `leave it: ${(failure ?? outOfMemory)?.message}`;
  if (hindrance) return `leave it: ${activity}`;
  const isUnrecorded = outOfMemory !== undefined && waitReason === "nothing";
  const reason = isUnrecorded ? " for the record that the service ran out of memory" : waitingFor(sizing);
  return `resize it later: it waits${reason}`;
}
