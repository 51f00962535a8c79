import { isHeld, isOfTemplate, type PipeView } from "../../controller/observe/pipe-view.ts";
import type { PodView } from "../../controller/observe/pod-view.ts";
import { isSameQuantity } from "../../controller/observe/resources.ts";
import { keyOfPipe, type PipeKind } from "../../controller/observe/workloads/kinds.ts";
import { PLURAL } from "../../crd/names.ts";
import type { Container, PodTemplate } from "../../kube/pods.ts";
import { capitalized } from "../command.ts";
import type { Cluster, Scaling } from "./cluster.ts";
import { type Result, warning } from "./result.ts";

/** Finds pods that differ from the pod template because of another writer, or although no rescale is in progress. */
export async function checkPodSizes(cluster: Cluster): Promise<Result[]> {
  const scalings = new Map(
    (await cluster.scalings()).map((each) => [`${each.metadata.namespace}/${each.metadata.name}`, each]),
  );
  const pods = await cluster.pods();
  const tolerated = (await cluster.controller())?.toleratedResizers ?? [];
  return (await cluster.pipes()).flatMap(({ view, template }) => {
    const { kind, metadata, serviceId, container, isPaused, rollout } = view;
    const { namespace, name } = metadata;
    if ("problem" in container) return [];
    const scaling = scalings.get(`${namespace}/${serviceId}`);
    const active = (pods.get(keyOfPipe(view)) ?? []).filter(({ isActive }) => isActive);
    const differences = (found: readonly PodView[]) =>
      found.flatMap((pod) => differenceOf(template, pod, container.name));
    const drifted = differences(active.filter((pod) => isOfSeenTemplate(view, pod))).filter(
      ({ writer }) => writer !== undefined,
    );
    const isSettled = rollout.isComplete && !isPaused && !isInProgress(scaling);
    const replaceable = isSettled ? active.filter((pod) => !isHeld(view, pod)) : [];
    const others = differences(replaceable).filter(({ writer }) => writer === undefined);
    const of = { kind, namespace, name, serviceId, isSuspended: scaling?.spec?.suspend === true };
    return [...ofWriter(cluster, drifted, of, tolerated), ...withoutWriter(cluster, others, of)];
  });
}

/**
 * True if the pod got the template that it is compared with. It need not be ready, and its owner may keep it from
 * rollouts. Pods of a Deployment do not show their template, so all of them must have it.
 */
function isOfSeenTemplate(view: PipeView, pod: PodView): boolean {
  const { inTurn, rollout } = view;
  return inTurn ? rollout.isSeen && isOfTemplate(view, pod) : rollout.isUpdated;
}

interface Difference {
  /** The pod, and its amounts. */
  readonly text: string;
  /** The field manager that resized it, unless it was the controller. */
  readonly writer: string | undefined;
}

interface PipeOfService {
  readonly kind: PipeKind;
  readonly namespace: string;
  readonly name: string;
  readonly serviceId: string;
  readonly isSuspended: boolean;
}

function ofWriter(
  cluster: Cluster,
  [first, ...others]: readonly Difference[],
  pipe: PipeOfService,
  tolerated: readonly string[],
): Result[] {
  if (first?.writer === undefined) return [];
  const writer = JSON.stringify(first.writer);
  const problem = `The pod ${first.text}${more(others)}: another writer, ${writer}, resized it after its pipe ${pipe.namespace}/${pipe.name} had its size.`;
  if (tolerated.includes(first.writer)) {
    const repair = pipe.isSuspended ? `then ${resume(cluster, pipe)}` : "and the controller repairs the pod.";
    return [
      warning(
        problem,
        `Wait until it returns the pod to its size. If it does not, remove it from controller.config.toleratedResizers, ${repair}`,
      ),
    ];
  }
  const exempt = `Exempt the pipe from ${writer}, then request a retry. If it returns the pod to its size by itself, add it to controller.config.toleratedResizers.`;
  return [warning(problem, pipe.isSuspended ? capitalized(resume(cluster, pipe)) : exempt)];
}

function withoutWriter(
  cluster: Cluster,
  [first, ...others]: readonly Difference[],
  pipe: PipeOfService,
): Result[] {
  if (!first) return [];
  const { kind, namespace, name, isSuspended } = pipe;
  const restart = cluster.kubectl(`rollout restart ${kind.toLowerCase()} ${name} --namespace ${namespace}`);
  return [
    warning(
      `The pod ${first.text}${more(others)}: it differs from the pod template of the pipe ${namespace}/${name}, although no rescale is in progress.`,
      isSuspended
        ? capitalized(resume(cluster, pipe))
        : `Replace the pods, which restarts the pipe: \`${restart}\`. If new pods differ, too, an admission webhook or an autoscaler changes them: exempt the pipe there.`,
    ),
  ];
}

/** The start of a sentence, or a part of one. */
function resume(cluster: Cluster, { serviceId, namespace }: PipeOfService): string {
  const patch = cluster.kubectl(
    `patch ${PLURAL} ${serviceId} --namespace ${namespace} --type merge --patch '{"spec":{"suspend":false}}'`,
  );
  return `resume the service, and the controller repairs the pods: ${patch}`;
}

function more(others: readonly Difference[]): string {
  if (others.length === 0) return "";
  return others.length === 1 ? " (and 1 more pod)" : ` (and ${others.length} more pods)`;
}

/** In a rescale in place, pods get the size before the template, and Ready is False until the template has it, too. */
function isInProgress(scaling: Scaling | undefined): boolean {
  if (!scaling) return false;
  const { observedGeneration, conditions = [] } = scaling.status ?? {};
  return (
    observedGeneration !== scaling.metadata.generation ||
    conditions.some(({ type, status }) => type === "Ready" && status === "False")
  );
}

/** Only amounts of the template count, because Kubernetes adds defaults of the namespace to pods. */
function differenceOf(template: PodTemplate, pod: PodView, name: string): Difference[] {
  const wanted = amountsOf(template.spec.containers.find((each) => each.name === name));
  const own = pod.containers.find((each) => each.name === name);
  const actual = amountsOf(own);
  const different = Object.entries(wanted).filter(
    ([key, amount]) => amount !== undefined && !isSameQuantity(actual[key], amount),
  );
  if (different.length === 0) return [];
  const texts = different.map(
    ([key, amount]) => `a ${key} of ${actual[key] ?? "nothing"} instead of ${amount}`,
  );
  const text = `${pod.metadata.namespace}/${pod.metadata.name} has ${texts.join(" and ")}`;
  return [{ text, writer: own?.resizedBy }];
}

function amountsOf(
  container: { readonly resources?: Container["resources"] } | undefined,
): Readonly<Record<string, string | undefined>> {
  const { requests = {}, limits = {} } = container?.resources ?? {};
  return {
    // Kubernetes sets an absent request of a pod to the limit.
    "cpu request": requests["cpu"] ?? limits["cpu"],
    "memory request": requests["memory"] ?? limits["memory"],
    "cpu limit": limits["cpu"],
    "memory limit": limits["memory"],
  };
}
