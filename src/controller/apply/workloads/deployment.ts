import { parseQuantity } from "../../../domain/quantity.ts";
import type { KubeRequest } from "../../../kube/client.ts";
import { isWithoutDryRun } from "../../../kube/errors.ts";
import { identityOf } from "../../../kube/objects.ts";
import { REPLICA_SETS } from "../../../kube/paths.ts";
import type { Container, PodTemplate } from "../../../kube/pods.ts";
import { parseTime } from "../../../kube/time.ts";
import type { ReplicaSet } from "../../../kube/workloads.ts";
import type { Of } from "../../actions.ts";
import { TEMPLATE_HASH_LABEL } from "../../names.ts";
import type { PipeView } from "../../observe/pipe-view.ts";
import {
  hasResources,
  type Resources,
  resourcesFor,
  resourcesOf,
  sizeOf,
  sizeOfAllotment,
} from "../../observe/resources.ts";
import { KINDS } from "../../observe/workloads/kinds.ts";
import type { WriteError } from "../../observe/write-record.ts";
import { errorOf } from "../../retry.ts";
import { type Applier, listSelected, observePipe, readPipe, type WholeWorkload } from "../applier.ts";
import { asDryRun, deleteRequest, patchRequest, templatePatch } from "../requests.ts";
import { CONFLICT, writeErrorOf } from "../write-error.ts";
import { type CommitKind, type NextStep, recordOfHold } from "./workload.ts";

/** A commit pauses the Deployment, so that its ReplicaSet can follow before its pods are compared with the template. */
export const DEPLOYMENT: CommitKind = {
  hold: () => ({ paused: true }),
  release: () => ({ paused: null }),

  /** Checks the ReplicaSets, and removes those that Kubernetes would use instead of the current one. */
  async prepare(applier, action) {
    const { pipe, container, rollout } = action;
    const target = resourcesFor(rollout.size, pipe.cpuLimitFollows);
    const whole = await readPipe<WholeWorkload>(applier, pipe);
    if (!whole) return { error: UNSETTLED };
    if (whole.metadata.resourceVersion !== pipe.metadata.resourceVersion) {
      observePipe(applier, KINDS[pipe.kind].toView(whole));
      return { error: { ...UNSETTLED, isConflict: true } };
    }
    let facts = await readCommitFacts(applier, whole, container);
    for (let deleted = 0; deleted <= MAX_DUPLICATES; deleted += 1) {
      const step = firstStep(facts, target);
      if (step === "pause") {
        await tryReplicaSet(applier, action, facts, target);
        return { managedFields: recordOfHold(pipe, whole) };
      }
      if (step === "wait") return { error: UNSETTLED };
      applier.assertMayWrite();
      await applier.client.json(deleteRequest(REPLICA_SETS, identityOf(step.metadata)));
      facts = { ...facts, replicaSets: facts.replicaSets.filter((each) => each !== step) };
    }
    return { error: UNSETTLED };
  },

  async nextStep(applier, { whole, view }, { container, isOverdue, mayReplacePods }) {
    let facts: CommitFacts;
    try {
      facts = await readCommitFacts(applier, whole, container);
    } catch (cause) {
      const error = writeErrorOf(cause);
      if (!isOverdue || error?.reason !== "Forbidden") throw cause;
      const old = view.lastRollout?.lastGoodSize;
      if (!mayReplacePods && old && !mayHaveFollowed(applier, view)) {
        const resources = resourcesFor(old, view.cpuLimitFollows);
        return { type: "take-back", resources, old: sizeOfAllotment(old) ?? old };
      }
      // The Deployment must not stay paused because a permission is missing that was there when it was paused.
      return { type: "release", fallback: { reason: "Forbidden", message: error.message } };
    }
    const resources = view.size && resourcesFor(view.size, view.cpuLimitFollows);
    const next = pausedStep(facts, resources, isOverdue, async (replicaSet, target) => {
      await applier.client.json(replicaSetRequest(replicaSet, container, target));
    });
    const { isSeen, isUpdated } = view.rollout;
    // What Kubernetes reports does not count alone: it may be from before the last write to the ReplicaSet.
    const isSettled = isSeen && isUpdated && (next.type === "wait" || next.type === "release");
    return isSettled ? { type: "release" } : next;
  },

  /** Gives the ReplicaSet the resources of its stale pods, so it differs from the template. This starts a rollout. */
  async replacePods(applier, whole, { container, resources, templateHash }) {
    const { replicaSets } = await readCommitFacts(applier, whole, container);
    const own = replicaSets.find((each) => hasPods(each) && each.metadata.name.endsWith(`-${templateHash}`));
    if (!own) return CONFLICT;
    applier.assertMayWrite();
    await applier.client.json(replicaSetRequest(own, container, acceptable(resources)));
    return undefined;
  },
};

/**
 * The admission policy accepts no less in a ReplicaSet, and no more than a maximum that is at least 24 cores with 96 GiB.
 * Any size other than that of the template replaces the pods. The template can have the largest size, but never these
 * amounts, which are a little less.
 */
const BOUNDS = {
  cpu: { least: "1m", most: "23999m" },
  memory: { least: "1Mi", most: "98303Mi" },
};

function acceptable({ requests, limits }: Resources): Resources {
  const { cpu, memory } = BOUNDS;
  return {
    requests: { cpu: within(cpu, requests.cpu), memory: within(memory, requests.memory) },
    limits: {
      ...(limits.cpu === undefined ? {} : { cpu: within(cpu, limits.cpu) }),
      memory: within(memory, limits.memory),
    },
  };
}

function within({ least, most }: (typeof BOUNDS)["cpu"], amount: string | null): string | null {
  if (amount === null) return null;
  const parsed = parseQuantity(amount) ?? 0n;
  if (parsed < (parseQuantity(least) ?? 0n)) return least;
  return parsed > (parseQuantity(most) ?? 0n) ? most : amount;
}

/** Without a list of ReplicaSets, what Kubernetes counts and the last write show whether one has the new size. */
function mayHaveFollowed({ writes }: Applier, { metadata, rollout }: PipeView): boolean {
  const isCounted = rollout.isSeen && rollout.isUpdated;
  return isCounted || writes.get(metadata.uid, "continue-commit")?.outcome.type === "done";
}

/** The Deployment as it was read for a step of a commit, with its ReplicaSets. */
export interface CommitFacts {
  readonly container: string;
  readonly template: PodTemplate;
  readonly replicaSets: readonly ReplicaSet[];
}

/**
 * Decides what comes before the template changes.
 *
 * @returns "wait" if something changed meanwhile, which the caches soon show; a ReplicaSet if it must be deleted first
 */
export function firstStep(
  { container, template, replicaSets }: CommitFacts,
  target: Resources,
): "pause" | "wait" | ReplicaSet {
  const [current, ...others] = replicaSets.filter(hasPods);
  if (!current || others.length > 0 || templateText(template) !== templateText(current.spec.template))
    return "wait";
  const isLater = ({ metadata }: ReplicaSet) =>
    parseTime(metadata.creationTimestamp) > parseTime(current.metadata.creationTimestamp);
  // Kubernetes would use this empty ReplicaSet in place of the current one.
  const duplicate = replicaSets.find(
    (each) =>
      !hasPods(each) &&
      !isLater(each) &&
      templateText(each.spec.template, container) === templateText(template, container) &&
      hasResources(containerOf(each, container).resources, target),
  );
  return duplicate ?? "pause";
}

/**
 * Decides what comes after the template changed.
 *
 * @param resources in the template of the paused Deployment; absent if its owner removed the size
 * @param update gives a ReplicaSet the resources of the template
 */
export function pausedStep(
  { container, template, replicaSets }: CommitFacts,
  resources: Resources | undefined,
  isOverdue: boolean,
  update: (replicaSet: ReplicaSet, resources: Resources) => Promise<void>,
): NextStep {
  const [current, ...others] = replicaSets.filter(hasPods);
  if (!current || !resources) return { type: "release" };
  if (others.length > 0) return replacing("its pods are of several ReplicaSets");
  // A template that its owner changed starts a rollout, so there is nothing to wait for.
  if (templateText(template, container) !== templateText(current.spec.template, container))
    return replacing("its owner changed the pod template meanwhile");
  const own = containerOf(current, container);
  // A Deployment controller that responds later finds the template in the ReplicaSet, and replaces no pod.
  if (hasResources(own.resources, resources)) return { type: isOverdue ? "release" : "wait" };
  if (!isOverdue) return { type: "relabel", write: () => update(current, resources) };
  const old = resourcesOf(own);
  return { type: "take-back", resources: old, old: sizeOf(own) ?? old };
}

/** Ends the pause. Kubernetes then replaces the pods in a rollout, which applies the size. */
function replacing(message: string): NextStep {
  return { type: "release", fallback: { reason: "NotSettled", message } };
}

/** The ReplicaSet has pods, or wants them. */
function hasPods({ spec, status }: ReplicaSet): boolean {
  return (spec.replicas ?? 1) > 0 || (status?.replicas ?? 0) > 0;
}

function containerOf({ spec }: ReplicaSet, name: string): Container {
  return spec.template.spec.containers.find((each) => each.name === name) ?? { name };
}

/** If more ReplicaSets than this have the size and no pods, the commit takes several attempts. */
const MAX_DUPLICATES = 10;

const UNSETTLED: WriteError = {
  reason: "WriteFailed",
  message: "the Deployment and its ReplicaSets are not settled",
};

/** If the last write to the ReplicaSet failed, a dry run tries the next one before the Deployment is paused again. */
async function tryReplicaSet(
  { client, writes }: Applier,
  { pipe, container }: Of<"commit">,
  { replicaSets }: CommitFacts,
  target: Resources,
): Promise<void> {
  const current = replicaSets.find(hasPods);
  if (!current || !errorOf(writes.get(pipe.metadata.uid, "continue-commit"))) return;
  try {
    await client.json(asDryRun(replicaSetRequest(current, container, target)));
  } catch (error) {
    if (!isWithoutDryRun(error)) throw error;
  }
}

async function readCommitFacts(
  { client }: Applier,
  whole: WholeWorkload,
  container: string,
): Promise<CommitFacts> {
  const selected = await listSelected(client, REPLICA_SETS, whole);
  const replicaSets = selected.filter(({ metadata: { ownerReferences } }) => {
    const owner = ownerReferences?.find(({ kind }) => kind === "Deployment");
    return owner?.uid === whole.metadata.uid;
  });
  return { container, template: whole.spec.template, replicaSets };
}

function replicaSetRequest({ metadata }: ReplicaSet, container: string, resources: Resources): KubeRequest {
  return patchRequest(REPLICA_SETS, identityOf(metadata), { spec: templatePatch(container, resources) });
}

/**
 * The API server writes the fields of an object in a fixed order, so equal templates are equal texts. Kubernetes
 * compares whole templates, the resources of other containers included, but quantities by their value.
 *
 * @param sized name of a container whose resources do not count
 */
function templateText({ metadata, spec }: PodTemplate, sized?: string): string {
  // Kubernetes adds this label to the template of a ReplicaSet.
  const labels = Object.entries(metadata?.labels ?? {}).filter(([name]) => name !== TEMPLATE_HASH_LABEL);
  const containers = spec.containers.map((each) =>
    each.name === sized ? { ...each, resources: undefined } : each,
  );
  return JSON.stringify(
    [
      { ...metadata, labels },
      { ...spec, containers },
    ],
    withOneNotation,
  );
}

/**
 * The fields of a template whose quantities can have several notations: resources of containers, of pods and of volume
 * claims, and the limit of an empty directory. A label or an annotation with such a name is a text, and no object. The
 * divisor of a `resourceFieldRef` is a quantity too, but the API server accepts and stores only one text for each value.
 */
const WITH_QUANTITIES = ["requests", "limits", "overhead", "emptyDir"];

/** For `JSON.stringify`: writes each quantity in the same notation, such as `1Gi` and `1073741824`. */
function withOneNotation(field: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || !WITH_QUANTITIES.includes(field)) return value;
  const written = Object.entries(value).map(([name, amount]) => [
    name,
    parseQuantity(`${amount}`)?.toString() ?? amount,
  ]);
  return Object.fromEntries(written);
}
