import { LAST_ROLLOUT_ANNOTATION } from "../../../src/controller/names.ts";
import { checkSizing } from "./commit-judge.ts";
import type { Kinds } from "./history.ts";
import type { JudgeContext, Moment } from "./judge-context.ts";
import type { PipeJudge } from "./pipe-judge.ts";
import { isRolledOut, pipeContainer } from "./pipe-view.ts";
import { hasRestarted, isReady, isResized, isWatched, runningSize } from "./pod-view.ts";
import { requestedSize } from "./recreation.ts";
import type { ScalingJudge } from "./scaling-judge.ts";
import type { ServiceRecord } from "./service-record.ts";
import { isSizedByUs, sizeIn } from "./sized-object.ts";
import type { PodRecord, Workloads } from "./workloads.ts";

type Deployment = Kinds["Deployment"];
type Pod = Kinds["Pod"];

/** The reason in an annotation, for its own size: the one in the status follows from it. */
const REASON = /"size":"([^"]+)".*"inPlaceFailure":\{"size":"\1"/;

const MOST_WRITES = 20;
const MOST_PODS = 10;

/** Checks the resizes of pods in place. */
export class InPlaceJudge {
  readonly #context: JudgeContext;
  readonly #workloads: Workloads;
  readonly #pipes: PipeJudge;
  readonly #scalings: ScalingJudge;

  constructor(context: JudgeContext, workloads: Workloads, pipes: PipeJudge, scalings: ScalingJudge) {
    this.#context = context;
    this.#workloads = workloads;
    this.#pipes = pipes;
    this.#scalings = scalings;
  }

  deployment(before: Deployment, after: Deployment, moment: Moment): void {
    if (isSizedByUs(before, after, pipeContainer(before)) && !after.spec.paused && isRolledOut(before))
      this.#checkRollout(before, after);
    this.#note(after.metadata.uid, moment);
  }

  /** A rollout replaces pods that were resized in place only if the status or the annotation says why. */
  #checkRollout(before: Deployment, after: Deployment): void {
    const container = pipeContainer(before);
    const size = sizeIn(after, container);
    const isResizedInPlace = this.#workloads
      .podsOf(after.metadata.uid)
      .some(({ object, given }) => given === size && sizeIn(object, container) === size);
    const service = this.#pipes.pipeOf(after.metadata.uid)?.service;
    if (!isResizedInPlace || !service) return;
    const { spec = {}, status = {} } = this.#scalings.scalingOf(service) ?? {};
    const messages = (status.conditions ?? []).map(({ message }) => message).join(" ");
    const isSaid = messages.includes(`The pods of ${after.metadata.name} are being replaced`);
    const isRecorded = REASON.test(after.metadata.annotations?.[LAST_ROLLOUT_ANNOTATION] ?? "");
    if (!isSaid && !isRecorded && spec.strategy !== "Rollout")
      this.#context.fault(
        after,
        `its pods have ${size} in place, and are replaced without a reason in the status`,
      );
  }

  pod(object: Pod, isBlind: boolean, moment: Moment): void {
    const { uid } = object.metadata;
    const { pods, deployments } = this.#workloads;
    const before = pods.get(uid);
    const deployment = deployments.get(this.#workloads.deploymentOf(object) ?? "");
    pods.set(uid, { writes: 0, requests: 0, ...before, object });
    if (before && deployment && !isBlind) {
      const isOurs = checkSizing(this.#context, "Pod", {
        before: before.object,
        after: object,
        deployment,
      });
      if (isOurs) this.#resized(before, object, deployment, moment);
      if (before.given !== undefined && hasRestarted(before.object, object))
        this.#context.fault(object, "a container restarted after the controller resized the pod in place");
    }
    if (deployment) this.#note(deployment.metadata.uid, moment);
  }

  gonePod(object: Pod, moment: Moment): void {
    this.#workloads.pods.delete(object.metadata.uid);
    this.#note(this.#workloads.deploymentOf(object) ?? "", moment);
  }

  #resized(before: PodRecord, after: Pod, deployment: Deployment, { atMs }: Moment): void {
    const { uid } = deployment.metadata;
    const judged = this.#pipes.pipeOf(uid);
    const former = this.#pipes.formerServiceOf(uid, atMs);
    const container = pipeContainer(deployment);
    const size = sizeIn(after, container);
    if (!judged && !former)
      this.#context.fault(after, "the controller changed it, but it does not belong to a pipe");
    if (!judged || size === undefined) return;
    const { pipe, service } = judged;
    const writes = service.requests === before.requests ? before.writes + 1 : 1;
    this.#workloads.pods.set(after.metadata.uid, {
      object: after,
      given: size,
      writes,
      requests: service.requests,
    });
    if (writes === MOST_WRITES + 1)
      this.#context.fault(after, `the controller resized it more than ${MOST_WRITES} times for one request`);
    if (size === pipe.size || runningSize(after, container) === size) return;
    const isRequested =
      service.placeOf(size, pipe.newestGiven) !== -1 ||
      (former?.placeOf(size) ?? -1) !== -1 ||
      this.#pipes.isReturn(service, size);
    if (!isRequested)
      this.#context.fault(
        after,
        `the controller applied ${size}, which is neither requested nor its old size`,
      );
    this.#checkPods(after, deployment, size);
    const isFirst = pipe.resizingTo !== size;
    pipe.resizingTo = size;
    // A pod that kept the size from an earlier request for it proves that the pipe runs with it.
    const isKept = this.#workloads
      .podsOf(uid)
      .some(({ object }) => sizeIn(object, container) === size && runningSize(object, container) === size);
    if (isFirst && !isKept && !this.#isReturn(service, size)) this.#pipes.checkCanary(pipe, service, size);
  }

  /** True if the service returns from a requested size in which it runs out of memory: all pipes at once. */
  #isReturn(service: ServiceRecord, size: string): boolean {
    const scaling = this.#scalings.scalingOf(service);
    // Without a size in the PipeScaling, the default of the tier is the one that was accepted last.
    const requested = scaling && (requestedSize(scaling) ?? service.latest);
    return requested !== undefined && Number.parseInt(size, 10) > Number.parseInt(requested, 10);
  }

  /** Checks that one pod is resized first, and then a limited number at a time. */
  #checkPods(after: Pod, deployment: Deployment, size: string): void {
    const container = pipeContainer(deployment);
    const others = this.#workloads
      .podsOf(deployment.metadata.uid)
      .map(({ object }) => object)
      .filter(({ metadata }) => metadata.uid !== after.metadata.uid)
      .filter((each) => sizeIn(each, container) === size);
    const unfinished = others.filter((each) => !isResized(each, container));
    if (unfinished.length >= MOST_PODS)
      this.#context.fault(
        after,
        `more than ${MOST_PODS} pods of ${deployment.metadata.name} are resized at once`,
      );
    if (unfinished.length > 0 && unfinished.length === others.length)
      this.#context.fault(after, `no pod of ${deployment.metadata.name} has proven ${size} yet`);
  }

  /** Updates what the pods of a pipe show. A resize in place ends when the template has the size of the pods. */
  #note(deploymentUid: string, { version }: Moment): void {
    const judged = this.#pipes.pipeOf(deploymentUid);
    if (!judged) return;
    const { pipe, service } = judged;
    const container = pipeContainer(pipe.object);
    const pods = this.#workloads.podsOf(deploymentUid);
    const sizes = new Set(
      pods.map(({ object }) => (isResized(object, container) ? sizeIn(object, container) : undefined)),
    );
    const [size] = sizes;
    pipe.podsRun = sizes.size === 1 ? size : undefined;
    pipe.isReadyOnce ||= pods.some(
      ({ object }) =>
        isReady(object) && isResized(object, container) && sizeIn(object, container) === pipe.size,
    );
    const isAhead = pods.some(
      ({ object, given }) =>
        given === pipe.resizingTo && sizeIn(object, container) === given && isWatched(object),
    );
    if (!isAhead || pipe.size === pipe.resizingTo) pipe.resizingTo = undefined;
    service.note(version);
  }
}
