import { setTimeout as delay } from "node:timers/promises";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { CONTROLLER_FIELD_MANAGER, PIPE_SCALINGS } from "../../../src/crd/names.ts";
import type { KubeClient } from "../../../src/kube/client.ts";
import { collectionPath, DEPLOYMENTS, objectPath, PODS } from "../../../src/kube/paths.ts";
import { PatientClient } from "../../support/patient-client.ts";
import type { TestEnvironment } from "../../support/test-environment.ts";
import type { Entry, Kind, Kinds } from "./history.ts";
import { historyText } from "./history-text.ts";
import { type Judgement, judge } from "./judge.ts";
import { Observer } from "./observer.ts";
import { isPausedForCommit, isRolledOut, pipeContainer, serviceOf, sizeOfCores } from "./pipe-view.ts";
import { isResized } from "./pod-view.ts";
import { isSizedByUs, type SizedObject, sizeIn } from "./sized-object.ts";

interface ObserveOptions {
  /** Setting of the controllers. */
  readonly maxConcurrentRollouts?: number;
  /** Other services, with the namespaces of their pipes. */
  readonly services?: ReadonlyMap<string, string>;
  /** Time in which a status must follow a change by another writer; longer if the faults hinder the controller. */
  readonly statusFollowsMs?: number;
}

/** A pipe that cannot be adopted, for example because a webhook denies it, does not keep a test waiting for longer. */
const MOST_ADOPTION_MS = 5000;
/** With more namespaces, one watch of all namespaces is cheaper. */
const MOST_NAMESPACES = 5;

/**
 * Observes the controllers during a test, and checks at the end that they kept the invariants
 * (docs/explanation/invariants.md).
 *
 *     const invariants = await Invariants.observe(environment);
 *     invariants.accept(1);                 // the default of the tier, before a controller applies it
 *     invariants.accept(4);
 *     await environment.requestSize(4);     // … and faults
 *     await invariants.settled(4, { quietMs: 5000 });
 *     await invariants.end();               // throws if an invariant was violated
 */
export class Invariants {
  readonly #client: KubeClient;
  readonly #observer: Observer;
  readonly #environment: TestEnvironment;
  readonly #services: ReadonlyMap<string, string>;
  readonly #options: ObserveOptions;
  readonly #unsettled: string[] = [];

  private constructor(environment: TestEnvironment, client: KubeClient, options: ObserveOptions) {
    this.#environment = environment;
    this.#client = client;
    this.#observer = new Observer(client);
    this.#services = new Map([[environment.serviceId, environment.pipes], ...(options.services ?? [])]);
    this.#options = options;
  }

  /** Call it before a controller starts. Earlier changes are not checked. */
  static async observe(environment: TestEnvironment, options: ObserveOptions = {}): Promise<Invariants> {
    const client = await PatientClient.of(environment.cluster);
    const invariants = new Invariants(environment, client, options);
    const namespaces = new Set([environment.records, ...invariants.#services.values()]);
    const isMany = namespaces.size > MOST_NAMESPACES;
    await invariants.#observer.watch(isMany ? [undefined] : [...namespaces], environment.records);
    return invariants;
  }

  /** Allows the controller to apply this size from now on. Call it before the size is requested. */
  accept(cores: number, serviceId = this.#environment.serviceId): void {
    this.#observer.entries.push({
      type: "accepted",
      serviceId,
      size: sizeOfCores(cores),
      after: this.#observer.newest,
    });
  }

  /** Call it when the API server refuses larger sizes from now on, and before that ends, with `undefined`. */
  limit(mostCores: number | undefined, serviceId = this.#environment.serviceId): void {
    this.#observer.entries.push({ type: "limited", serviceId, mostCores, after: this.#observer.newest });
  }

  /** Ranges of versions that were not completely observed. */
  get gaps(): readonly string[] {
    return this.#observer.entries.flatMap((entry) =>
      entry.type === "gap" ? [`${entry.kind} from ${entry.after} to ${entry.until}`] : [],
    );
  }

  /** Resolves to true when the controller makes its next write of a resize in place to this kind, or else to false. */
  async seesResize(kind: "Pod" | "ReplicaSet" | "Deployment", timeoutMs: number): Promise<boolean> {
    const { entries } = this.#observer;
    const until = performance.now() + timeoutMs;
    for (let next = entries.length; performance.now() < until; await delay(5)) {
      for (; next < entries.length; next++) if (isWriteInPlace(entries, next, kind)) return true;
    }
    return false;
  }

  /** Waits for `reached` and then for `quiet`. */
  async settled(
    cores: number,
    { quietMs = 1000, timeoutMs = 60_000, serviceId = this.#environment.serviceId } = {},
  ): Promise<void> {
    await this.reached(cores, { timeoutMs, serviceId });
    const until = performance.now() + MOST_ADOPTION_MS;
    await waitFor(async () => performance.now() > until || (await this.#isAdopted(serviceId)), {
      what: "the pipes to be adopted",
    });
    await this.quiet(quietMs);
  }

  /** The controller becomes an owner of each size, which a conflict can delay until after Ready=True. */
  async #isAdopted(serviceId: string): Promise<boolean> {
    const pipes = await this.#pipes(this.#services.get(serviceId) ?? "");
    return pipes.every(({ metadata }) =>
      metadata.managedFields?.some(
        ({ manager, fieldsV1 }) =>
          manager === CONTROLLER_FIELD_MANAGER && JSON.stringify(fieldsV1).includes('"f:requests"'),
      ),
    );
  }

  /** Waits until every pipe of the service runs this size after a completed rollout, and the PipeScaling is ready. */
  async reached(
    cores: number,
    { timeoutMs = 60_000, serviceId = this.#environment.serviceId } = {},
  ): Promise<void> {
    const what = `all pipes of ${serviceId} to run ${sizeOfCores(cores)} and Ready=True`;
    await waitFor(() => this.#isReached(sizeOfCores(cores), serviceId), { what, timeoutMs });
  }

  /** Observes for this time that the controller writes nothing. If it does, `end` throws. */
  async quiet(quietMs: number): Promise<void> {
    await this.#observer.caughtUp();
    const before = new Set(this.#judge().writes);
    await delay(quietMs);
    await this.#observer.caughtUp();
    // An Event is written after the status that it is about. The name of a tier follows a record, whose watch can be late.
    const more = this.#judge().writes.filter(
      (write) => !before.has(write) && !/^Event |\(\{"tier":"\w+"\}\)$/.test(write),
    );
    if (more.length > 0)
      this.#unsettled.push(`The controller had nothing to do, but wrote: ${more.join(", ")}.`);
  }

  /** The violations so far. */
  get violations(): readonly string[] {
    return [...this.#judge().violations, ...this.#unsettled];
  }

  /** All observed versions as text, for the analysis of a failure. */
  get history(): string {
    return historyText(this.#observer.entries);
  }

  /** @throws Error that lists all violations */
  async end(): Promise<void> {
    try {
      await this.#observer.caughtUp();
    } finally {
      await this.close();
    }
    const { violations } = this;
    if (violations.length > 0) throw new Error(`The invariants do not hold:\n${violations.join("\n")}`);
  }

  /** Ends the observation without a check, for example because the cluster was removed. */
  async close(): Promise<void> {
    await this.#observer.end();
    await this.#client.close();
  }

  #judge(): Judgement {
    const { maxConcurrentRollouts = 50, statusFollowsMs } = this.#options;
    return judge(this.#observer.entries, {
      services: this.#services,
      maxConcurrentRollouts,
      statusFollowsMs,
    });
  }

  /** Waits until no Deployment in the namespaces of pipes is paused, whatever labels it has. */
  async nonePaused({ timeoutMs = 60_000 } = {}): Promise<void> {
    const isNone = async () => {
      const paused = (
        await Promise.all([...new Set(this.#services.values())].map((each) => this.#pipes(each)))
      )
        .flat()
        .filter(({ spec }) => spec.paused);
      if (paused.length === 0) return true;
      throw new Error(`paused: ${paused.map(({ metadata }) => metadata.name).join(", ")}`);
    };
    await waitFor(isNone, { what: "all Deployments to be resumed", timeoutMs });
  }

  async #pipes(namespace: string): Promise<readonly Kinds["Deployment"][]> {
    const path = collectionPath(DEPLOYMENTS, namespace);
    return (await this.#client.json<{ readonly items: readonly Kinds["Deployment"][] }>({ path })).items;
  }

  async #isReached(size: string, serviceId: string): Promise<true> {
    const namespace = this.#services.get(serviceId) ?? "";
    const items = await this.#pipes(namespace);
    const others = items.filter((pipe) => serviceOf(pipe) === serviceId && !runs(pipe, size));
    if (others.length > 0) {
      const seen = others.map((each) => `${each.metadata.name} ${sizeIn(each, pipeContainer(each))}`);
      throw new Error(`not yet: ${seen.join(", ")}; ${await this.#readyOf(serviceId)}`);
    }
    await this.#checkPods(
      items.filter((pipe) => serviceOf(pipe) === serviceId),
      namespace,
    );
    const { metadata, status } = await this.#client.json<Kinds["PipeScaling"]>({
      path: objectPath(PIPE_SCALINGS, namespace, serviceId),
    });
    const ready = status?.conditions?.find((each) => each.type === "Ready");
    if (ready?.status === "True" && status?.observedGeneration === metadata.generation) return true;
    throw new Error(`not yet ready: ${ready?.reason} ${ready?.message}`);
  }

  /** For people. */
  async #readyOf(serviceId: string): Promise<string> {
    const path = objectPath(PIPE_SCALINGS, this.#services.get(serviceId) ?? "", serviceId);
    const { status } = await this.#client.json<Kinds["PipeScaling"]>({ path });
    const { reason, message } = status?.conditions?.find(({ type }) => type === "Ready") ?? {};
    return `${reason}: ${message}`;
  }

  /** A pod that was resized in place can have another size than the template of its Deployment. */
  async #checkPods(pipes: readonly Kinds["Deployment"][], namespace: string): Promise<void> {
    const { items } = await this.#client.json<{ readonly items: readonly Kinds["Pod"][] }>({
      path: collectionPath(PODS, namespace),
    });
    for (const pod of items) {
      const pipe = pipes.find(({ metadata }) => metadata.name === ownerName(pod));
      if (!pipe || pod.metadata.deletionTimestamp !== undefined) continue;
      const container = pipeContainer(pipe);
      const size = sizeIn(pod, container);
      if (size !== sizeIn(pipe, container) || !isResized(pod, container))
        throw new Error(`not yet: pod ${pod.metadata.name} has ${size}`);
    }
  }
}

/** True if the entry with this index is a size that the controller gave a pod or ReplicaSet, or a pause. */
function isWriteInPlace(entries: readonly Entry[], index: number, kind: Kind): boolean {
  const entry = entries[index];
  if (entry?.type !== "seen" || entry.kind !== kind) return false;
  if (entry.kind === "Deployment") return isPausedForCommit(entry.object);
  if (entry.kind !== "Pod" && entry.kind !== "ReplicaSet") return false;
  const { object } = entry;
  const before = entries.findLast(
    (each, place) =>
      place < index && each.type === "seen" && each.object.metadata.uid === object.metadata.uid,
  );
  if (before?.type !== "seen" || before.kind !== kind) return false;
  const { containers } = "template" in object.spec ? object.spec.template.spec : object.spec;
  return containers.some(({ name }) => isSizedByUs<SizedObject>(before.object as SizedObject, object, name));
}

/** The owner of a pod is the ReplicaSet `<name of the Deployment>-<hash>`. */
function ownerName({ metadata }: Kinds["Pod"]): string | undefined {
  const owner = metadata.ownerReferences?.find(({ kind }) => kind === "ReplicaSet");
  return owner?.name.replace(/-[^-]+$/, "");
}

function runs(pipe: Kinds["Deployment"], size: string): boolean {
  return sizeIn(pipe, pipeContainer(pipe)) === size && isRolledOut(pipe) && !isPausedForCommit(pipe);
}
