import { hasResources, resourcesOf } from "../../../src/controller/observe/resources.ts";
import type { Pod } from "../../../src/kube/pods.ts";
import type { FakeClock } from "../fakes/fake-clock.ts";
import { isSame, timeAt } from "./objects.ts";
import {
  crashedWith,
  isActive,
  isRunning,
  readiness,
  runningWith,
  type SimulatedPod,
  withConditions,
} from "./pod-status.ts";
import type { SimulatedPods } from "./pods.ts";

/** The response of a kubelet to a resize: it applies the resize, reports a reason, or does not observe it. */
export type ResizeOutcome = "Done" | "Deferred" | "Infeasible" | "Error" | "NotObserved";

export interface KubeletsOptions {
  readonly clock: FakeClock;
  readonly pods: SimulatedPods;
  /** The readiness of a pod has changed. */
  readonly onReadiness: (pod: Pod) => void;
}

interface FailureOptions {
  /** Time from a start, or a resize, until the next crash. */
  readonly afterMs?: number;
  /** A readiness probe keeps the pod from becoming ready before it crashes again. */
  readonly isProbed?: boolean;
}

const START_MS = 500;
const KUBELET_MS = 30;
/** A container that crashes again and again runs for a second, and waits for twice as long each time. */
const CRASHES_AFTER_MS = 1000;
const FIRST_BACK_OFF_MS = 10_000;
const MOST_BACK_OFF_MS = 300_000;

/** Runs the containers of the simulated pods. */
export class SimulatedKubelets {
  outcome: (pod: Pod) => ResizeOutcome = () => "Done";
  /** Time until a new pod is ready; `undefined` if it never is. */
  startMs: (pod: Pod) => number | undefined = () => START_MS;
  /** A resize that has to wait is granted while the container is stopped too, as Kubernetes does. */
  grantsStopped = false;
  /** UIDs of pods that report a memory limit, and whose cgroup keeps the one before it: kubernetes#138760. */
  readonly starved = new Set<string>();
  readonly #options: KubeletsOptions;
  #fails: (pod: Pod) => boolean = () => false;
  #failure: Required<FailureOptions> = { afterMs: CRASHES_AFTER_MS, isProbed: false };
  /** UIDs of the pods whose containers crash again after each restart. */
  readonly #crashing = new Set<string>();

  constructor(options: KubeletsOptions) {
    this.#options = options;
  }

  /** A pod got a node. */
  start({ metadata: { name } }: SimulatedPod): void {
    const { clock, pods, onReadiness } = this.#options;
    const scheduled = pods.objects.get(name);
    const startMs = scheduled && this.startMs(scheduled);
    if (startMs === undefined) return;
    clock.after(startMs, () => {
      const pod = pods.objects.get(name);
      if (!pod || !isActive(pod) || isRunning(pod)) return;
      const started = { ...pod, status: { ...pod.status, observedGeneration: 1, ...runningWith(pod) } };
      this.#put(started, true);
      onReadiness(pod);
      this.look(name);
    });
  }

  /** The spec of a pod has changed. */
  resized(name: string): void {
    this.#options.clock.after(KUBELET_MS, () => this.look(name));
  }

  /** The kubelet compares the spec of a pod with what it runs. */
  look(name: string): void {
    const pod = this.#options.pods.objects.get(name);
    if (!pod || !isActive(pod)) return;
    const runs = isRunning(pod);
    if (!runs && !(this.grantsStopped && isPending(pod))) return;
    // A resize to the resources that the pod already runs with is done at once, even without room on the node.
    const isApplied = pod.spec.containers.every((container, index) =>
      hasResources(pod.status?.containerStatuses?.[index]?.resources, resourcesOf(container)),
    );
    const hasRoom = this.#options.pods.hasRoomToResize(pod);
    const wanted = this.outcome(pod);
    const outcome = wanted === "Done" && !hasRoom ? "Deferred" : wanted;
    if (outcome === "NotObserved") return;
    const done = outcome === "Done" || isApplied;
    const problem = { status: "True", reason: outcome };
    const isError = outcome === "Error";
    const conditions = {
      PodResizePending: done || isError ? undefined : problem,
      PodResizeInProgress: done || !isError ? undefined : problem,
    };
    const observedGeneration = pod.metadata.generation ?? 0;
    const status = { ...withConditions(pod.status, conditions), observedGeneration };
    const after = { ...pod, status: done && runs ? { ...status, ...runningWith(pod) } : status };
    if (isSame(sorted(after), sorted(pod))) return;
    if (done && !runs) this.starved.add(pod.metadata.uid);
    else if (done) this.starved.delete(pod.metadata.uid);
    if (runs && this.#failure.isProbed) this.#put(after, true);
    else this.#options.pods.put(after, "status");
    this.#failLater(name);
    this.#options.pods.scheduleAll();
  }

  /**
   * The container of a pod crashes, and starts again with the resources in its spec, unless their resize is pending.
   *
   * @param stopMs time until the restart; the kubelet does not resize the pod meanwhile, unless `grantsStopped`
   */
  crash(name: string, stopMs = 0, reason = "Error"): void {
    const { clock, pods, onReadiness } = this.#options;
    const pod = pods.objects.get(name);
    if (!pod || !isRunning(pod)) return;
    const crashed = {
      ...pod,
      status: { ...pod.status, ...crashedWith(pod, reason, timeAt(clock.now())) },
    };
    if (stopMs === 0) {
      this.#restart(crashed);
      return;
    }
    this.#put(crashed, false);
    onReadiness(pod);
    clock.after(stopMs, () => {
      const stopped = pods.objects.get(name);
      if (!stopped || !isActive(stopped) || stopped.metadata.uid !== pod.metadata.uid) return;
      this.#restart(stopped);
      onReadiness(stopped);
      this.look(name);
    });
  }

  /** The container of a pod crashes again and again, with the delays of a kubelet. */
  crashLoop(name: string): void {
    const uid = this.#options.pods.objects.get(name)?.metadata.uid;
    if (uid === undefined) return;
    this.#crashing.add(uid);
    this.#crashAgain(name, uid, FIRST_BACK_OFF_MS);
  }

  /** From now on, the containers of these pods crash again and again, with the delays of a kubelet. */
  failWhile(fails: (pod: Pod) => boolean, options: FailureOptions = {}): void {
    this.#fails = fails;
    this.#failure = { ...this.#failure, ...options };
    for (const name of this.#options.pods.objects.keys()) this.#failLater(name);
  }

  /** The readiness probe of a running pod begins to fail, or to succeed. */
  probe(name: string, isReady: boolean): void {
    const pod = this.#options.pods.objects.get(name);
    if (!pod || !isRunning(pod)) return;
    this.#put(pod, isReady);
    this.#options.onReadiness(pod);
  }

  /** The containers that crash again and again stay up after the next restart. */
  endCrashLoops(): void {
    this.#crashing.clear();
  }

  #crashAgain(name: string, uid: string, backOffMs: number): void {
    if (!this.#crashing.has(uid) || this.#options.pods.objects.get(name)?.metadata.uid !== uid) return;
    this.crash(name, backOffMs);
    const nextMs = Math.min(2 * backOffMs, MOST_BACK_OFF_MS);
    this.#options.clock.after(backOffMs + CRASHES_AFTER_MS, () => this.#crashAgain(name, uid, nextMs));
  }

  #failLater(name: string): void {
    const { clock, pods } = this.#options;
    const running = pods.objects.get(name);
    if (!running || !this.#fails(running)) return;
    clock.after(this.#failure.afterMs, () => {
      const pod = pods.objects.get(name);
      if (!pod || pod.metadata.uid !== running.metadata.uid || !this.#fails(pod)) return;
      const restarts = pod.status?.containerStatuses?.[0]?.restartCount ?? 0;
      this.crash(name, Math.min(FIRST_BACK_OFF_MS * 2 ** restarts, MOST_BACK_OFF_MS));
    });
  }

  #restart(pod: SimulatedPod): void {
    const restartCount = (pod.status?.containerStatuses?.[0]?.restartCount ?? 0) + 1;
    const status = { ...pod.status, ...runningWith(pod, restartCount, isPending(pod)) };
    this.#put({ ...pod, status }, true);
  }

  #put(pod: SimulatedPod, isReady: boolean): void {
    const { clock, pods } = this.#options;
    const isKept = this.#failure.isProbed && this.#fails(pod);
    const Ready = readiness(isReady && !isKept, timeAt(clock.now()));
    pods.put({ ...pod, status: withConditions(pod.status, { Ready }) }, "status");
    this.#failLater(pod.metadata.name);
  }
}

/** Returns true if the pod waits for a resize, and still has its old resources. */
function isPending({ status }: Pod): boolean {
  return status?.conditions?.some(({ type }) => type === "PodResizePending") ?? false;
}

/** The order of conditions has no meaning. */
function sorted({ status }: Pod) {
  const conditions = status?.conditions?.toSorted((a, b) => a.type.localeCompare(b.type));
  return { ...status, conditions, containerStatuses: JSON.stringify(status?.containerStatuses) };
}
