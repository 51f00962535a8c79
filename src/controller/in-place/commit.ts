import { createHash } from "node:crypto";
import { type Identity, identityOf, type KubeObject } from "../../kube/objects.ts";
import type { Container, PodTemplate } from "../../kube/pods.ts";
import { parseTime } from "../../kube/time.ts";
import type { ReplicaSet } from "../../kube/workloads.ts";
import { REVISION_ANNOTATION, TEMPLATE_HASH_LABEL } from "../names.ts";
import type { Fallback } from "../observe/last-rollout.ts";
import { hasResources, type Resources } from "../observe/resources.ts";

/*
 * The pods of a pipe have a size, and its template follows without a rollout (docs/explanation/in-place.md): pause the
 * Deployment and set the template, set the template of the ReplicaSet, resume. Each function decides one write from what
 * was read just before it.
 */

/** The Deployment as it was read for a step of a commit, with its ReplicaSets. */
export interface CommitFacts {
  readonly container: string;
  readonly template: TemplateView;
  readonly replicaSets: readonly ReplicaSetView[];
}

export type BeginCommit =
  | { readonly type: "pause" }
  /** Kubernetes would use this empty ReplicaSet in place of the current one. */
  | { readonly type: "delete-replica-set"; readonly replicaSet: ReplicaSetView }
  /** Something changed meanwhile; the caches show it soon. */
  | { readonly type: "wait" };

export type ContinueCommit =
  | {
      readonly type: "update-replica-set";
      readonly replicaSet: ReplicaSetView;
      /** The resources in the template. */
      readonly resources: Resources;
    }
  | { readonly type: "wait" }
  /** @param fallback why its pods are replaced then; absent if they are not */
  | { readonly type: "resume"; readonly fallback?: Fallback }
  /** The template gets the resources of the ReplicaSet again, so that no pod is replaced. */
  | { readonly type: "take-back"; readonly resources: ReplicaSetView["resources"] };

export function beginCommit(facts: CommitFacts, target: Resources): BeginCommit {
  const { container, template, replicaSets } = facts;
  const [current, ...others] = inUse(replicaSets);
  if (!current || others.length > 0 || !isEqual(template, current, container)) return { type: "wait" };
  const duplicate = replicaSets.find(
    (each) =>
      each.pods === 0 &&
      each.createdAtS <= current.createdAtS &&
      isSameTemplate(each, current, container) &&
      hasResources(each.resources.get(container), target),
  );
  return duplicate ? { type: "delete-replica-set", replicaSet: duplicate } : { type: "pause" };
}

/** @param resources in the template of the paused Deployment; absent if its owner removed the size */
export function continueCommit(
  facts: CommitFacts,
  resources: Resources | undefined,
  isOverdue: boolean,
): ContinueCommit {
  const { container, template, replicaSets } = facts;
  const [current, ...others] = inUse(replicaSets);
  if (!current || !resources) return { type: "resume" };
  if (others.length > 0) return rollout("its pods are of several ReplicaSets");
  // A template that its owner changed starts a rollout, so there is nothing to wait for.
  if (!isSameTemplate(template, current, container))
    return rollout("its owner changed the pod template meanwhile");
  const isUpdated = hasResources(current.resources.get(container), resources);
  // A Deployment controller that responds later finds the template in the ReplicaSet, and replaces no pod.
  if (isUpdated) return isOverdue ? { type: "resume" } : { type: "wait" };
  if (isOverdue) return { type: "take-back", resources: current.resources };
  return { type: "update-replica-set", replicaSet: current, resources };
}

/** The rollout brings the size. */
function rollout(message: string): ContinueCommit {
  return { type: "resume", fallback: { reason: "NotSettled", message } };
}

/** ReplicaSets that have pods. */
function inUse(replicaSets: readonly ReplicaSetView[]): readonly ReplicaSetView[] {
  return replicaSets.filter(({ pods }) => pods > 0);
}

function isEqual(template: TemplateView, current: ReplicaSetView, container: string): boolean {
  const sized = (each: TemplateView) => JSON.stringify(each.resources.get(container) ?? {});
  return isSameTemplate(template, current, container) && sized(template) === sized(current);
}

/** The fields of a ReplicaSet that in-place resizes need. */
export interface ReplicaSetView extends KubeObject, TemplateView {
  readonly metadata: Identity;
  /** UID of its Deployment. */
  readonly deploymentUid: string | undefined;
  /** In whole seconds since 1970, as Kubernetes compares them. */
  readonly createdAtS: number;
  readonly revision: number;
  /** Pods that it has or wants. */
  readonly pods: number;
}

export function toReplicaSetView({ metadata, spec, status }: ReplicaSet): ReplicaSetView {
  return {
    metadata: identityOf(metadata),
    deploymentUid: metadata.ownerReferences?.find(({ kind }) => kind === "Deployment")?.uid,
    createdAtS: Math.floor(parseTime(metadata.creationTimestamp) / 1000),
    revision: Number.parseInt(metadata.annotations?.[REVISION_ANNOTATION] ?? "", 10) || 0,
    pods: Math.max(spec.replicas ?? 1, status?.replicas ?? 0),
    ...toTemplateView(spec.template),
  };
}

/** A pod template, reduced to what shows whether another one is the same. */
export interface TemplateView {
  /** Resources of each container, by name. */
  readonly resources: ReadonlyMap<string, Container["resources"]>;
  /** Equal for templates that differ only in resources. */
  readonly templateHash: string;
}

export function toTemplateView(template: PodTemplate): TemplateView {
  return {
    resources: new Map(template.spec.containers.map(({ name, resources }) => [name, resources])),
    templateHash: hashWithoutResources(template),
  };
}

/** Kubernetes compares whole templates, the resources of other containers included. */
export function isSameTemplate(a: TemplateView, b: TemplateView, container: string): boolean {
  if (a.templateHash !== b.templateHash) return false;
  const others = ({ resources }: TemplateView) =>
    JSON.stringify([...resources].filter(([name]) => name !== container));
  return others(a) === others(b);
}

/** The API server writes the fields of an object in one order, so equal templates are equal texts. */
function hashWithoutResources({ metadata, spec }: PodTemplate): string {
  const labels = Object.entries(metadata?.labels ?? {}).filter(([name]) => name !== TEMPLATE_HASH_LABEL);
  const containers = spec.containers.map(({ resources: _, ...rest }) => rest);
  const text = JSON.stringify([
    { ...metadata, labels },
    { ...spec, containers },
  ]);
  return createHash("sha256").update(text).digest("base64");
}
