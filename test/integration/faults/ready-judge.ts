import type { Kinds } from "./history.ts";
import { IN_FLIGHT_MS, type Moment } from "./judge-context.ts";
import { pipeContainer, sizeOfAmounts } from "./pipe-view.ts";
import { isActive, sizeInUse } from "./pod-view.ts";
import { isSizedByUs, type SizedObject, sizeIn } from "./sized-object.ts";

type Deployment = Kinds["Deployment"];
type Pod = Kinds["Pod"];
type Scaling = Kinds["PipeScaling"];

/** The last change of a size. */
interface Change extends Moment {
  /** The controller made it. */
  readonly isOurs: boolean;
}

/** An object with a size: a template or a pod. */
interface Sized<T> {
  readonly object: T;
  readonly changed: Change;
}

interface Template extends Sized<Deployment> {
  readonly serviceId: string | undefined;
  /** When its owner gave it to the service. */
  readonly joined: Moment;
  /** The Deployment came from another service, for which a write may have been in flight. */
  readonly isMoved: boolean;
}

/** A status with Ready=True about the current generation. */
interface Claim {
  readonly size: string;
  readonly written: Moment;
  /** The version that the writer of the status knew at least. */
  readonly since: bigint;
  /** UIDs of the objects that were reported. */
  readonly reported: Set<string>;
}

export interface ReadyContext {
  /** Returns the ID of the observed service that a Deployment belongs to. */
  readonly serviceOf: (deployment: Deployment) => string | undefined;
  /** Returns the UID of the Deployment that a pod belongs to. */
  readonly deploymentOf: (pod: Pod) => string | undefined;
  /** True if events of any kind may be missing at this version. */
  readonly isUnseen: (version: bigint) => boolean;
  readonly fault: (object: SizedObject, fault: string) => void;
  /** Time in which a status must follow a change by another writer. */
  readonly followsMs: number;
}

/**
 * Checks at each event that Ready=True about the current generation implies that all templates and active pods of the
 * service have the desired size in the same status. A change of the controller violates that immediately; after a change
 * of another writer the status has some time to follow.
 */
export class ReadyJudge {
  readonly #context: ReadyContext;
  /** Deployments by UID. */
  readonly #templates = new Map<string, Template>();
  readonly #pods = new Map<string, Sized<Pod>>();
  /** Claims by ID of the service. */
  readonly #claims = new Map<string, Claim>();
  readonly #scalings = new Map<string, Scaling>();
  /** Services with a difference that the status may still follow. */
  readonly #waiting = new Set<string>();

  constructor(context: ReadyContext) {
    this.#context = context;
  }

  deployment(object: Deployment, moment: Moment): void {
    const { uid } = object.metadata;
    const before = this.#templates.get(uid);
    const serviceId = this.#context.serviceOf(object);
    const container = pipeContainer(object);
    const isChanged = !before || sizeIn(before.object, container) !== sizeIn(object, container);
    const isOurs = before !== undefined && this.#isOurs(before.object, object, container, moment);
    this.#templates.set(uid, {
      object,
      serviceId,
      changed: isChanged ? { ...moment, isOurs } : before.changed,
      ...(before && before.serviceId === serviceId
        ? { joined: before.joined, isMoved: before.isMoved }
        : { joined: moment, isMoved: before !== undefined }),
    });
    this.#check(before?.serviceId, moment);
    this.#check(serviceId, moment);
  }

  goneDeployment({ metadata: { uid } }: Deployment, moment: Moment): void {
    const serviceId = this.#templates.get(uid)?.serviceId;
    this.#templates.delete(uid);
    this.#check(serviceId, moment);
  }

  pod(object: Pod, moment: Moment): void {
    const { uid } = object.metadata;
    const before = this.#pods.get(uid);
    const template = this.#templateOf(object);
    const container = template && pipeContainer(template.object);
    const isOurs = before !== undefined && this.#isOurs(before.object, object, container, moment);
    const isChanged = !before || sizesOf(before.object) !== sizesOf(object);
    // A repair that the kubelet has not finished continues the difference that it ends.
    const isRepair =
      isOurs && sizeIn(object, container) === this.#claims.get(template?.serviceId ?? "")?.size;
    const changed = isChanged && !(isRepair && before) ? { ...moment, isOurs } : before?.changed;
    this.#pods.set(uid, { object, changed: changed ?? { ...moment, isOurs } });
    this.#check(template?.serviceId, moment);
  }

  gonePod(object: Pod, moment: Moment): void {
    this.#pods.delete(object.metadata.uid);
    this.#check(this.#templateOf(object)?.serviceId, moment);
  }

  scaling(object: Scaling, moment: Moment): void {
    const { name } = object.metadata;
    const before = this.#scalings.get(name);
    this.#scalings.set(name, object);
    const size = claimedSize(object);
    const isWritten =
      before?.metadata.uid !== object.metadata.uid ||
      JSON.stringify(before.status) !== JSON.stringify(object.status);
    const claim = this.#claims.get(name);
    if (size === undefined) this.#claims.delete(name);
    else if (isWritten || !claim)
      this.#claims.set(name, {
        size,
        written: moment,
        since: BigInt(before?.metadata.resourceVersion ?? 0),
        reported: claim?.size === size ? claim.reported : new Set(),
      });
    this.#check(name, moment);
  }

  goneScaling({ metadata: { name } }: Scaling, moment: Moment): void {
    this.#scalings.delete(name);
    this.#claims.delete(name);
    this.#check(name, moment);
  }

  /** Time has passed. */
  passed(moment: Moment): void {
    for (const serviceId of [...this.#waiting]) this.#check(serviceId, moment);
  }

  #check(serviceId: string | undefined, now: Moment): void {
    if (serviceId === undefined || this.#context.isUnseen(now.version)) return;
    const claim = this.#claims.get(serviceId);
    const others = claim ? this.#differences(serviceId, claim) : [];
    this.#waiting.delete(serviceId);
    if (!claim) return;
    const uids = new Set(others.map(({ object }) => object.metadata.uid));
    for (const uid of claim.reported) if (!uids.has(uid)) claim.reported.delete(uid);
    for (const { object, changed, has } of others) {
      const { uid } = object.metadata;
      if (claim.reported.has(uid)) continue;
      const fault = violation(claim, changed, now, this.#context.followsMs);
      if (fault === undefined) {
        this.#waiting.add(serviceId);
        continue;
      }
      claim.reported.add(uid);
      this.#context.fault(
        object,
        `it has ${has} at version ${now.version}, but ${serviceId} is Ready=True at ${claim.size} (${fault})`,
      );
    }
  }

  /** Templates and active pods of the service that have another size. */
  #differences(serviceId: string, { size }: Claim) {
    const templates = [...this.#templates.entries()].filter(
      ([, { object, serviceId: id }]) => id === serviceId && object.metadata.deletionTimestamp === undefined,
    );
    const pods = [...this.#pods.values()].filter(({ object }) => isActive(object));
    return templates.flatMap(([uid, { object, changed, joined, isMoved }]) => {
      const container = pipeContainer(object);
      const own = pods.filter((pod) => this.#context.deploymentOf(pod.object) === uid);
      const since = (change: Change): Change => {
        const isForFormer = isMoved && change.isOurs && change.atMs - joined.atMs <= IN_FLIGHT_MS;
        return joined.version > change.version || isForFormer ? { ...joined, isOurs: false } : change;
      };
      return [
        { object, changed: since(changed), has: sizeIn(object, container) },
        ...own.map((pod) => ({
          object: pod.object,
          changed: since(pod.changed),
          has: sizeInUse(pod.object, container),
        })),
      ].filter(({ has }) => has !== size);
    });
  }

  #isOurs<T extends SizedObject>(before: T, after: T, container: string | undefined, moment: Moment) {
    return !this.#context.isUnseen(moment.version) && isSizedByUs(before, after, container);
  }

  #templateOf(pod: Pod): Template | undefined {
    return this.#templates.get(this.#context.deploymentOf(pod) ?? "");
  }
}

/** Returns why a difference is a violation already; `undefined` if the status may still follow. */
function violation(claim: Claim, changed: Change, now: Moment, followsMs: number): string | undefined {
  if (changed.isOurs) return `since the controller's write at version ${changed.version}`;
  const knownMs = claim.written.atMs - changed.atMs;
  // A status that is written must know what was so before the status that it replaces.
  if (changed.version <= claim.since && knownMs > IN_FLIGHT_MS)
    return `written at version ${claim.written.version}, ${Math.round(knownMs)} ms later`;
  const lastedMs = now.atMs - changed.atMs;
  return lastedMs > followsMs ? `for ${Math.round(lastedMs)} ms` : undefined;
}

/** The desired size of a status with Ready=True about the current generation. */
function claimedSize({ metadata, status = {} }: Scaling): string | undefined {
  const { conditions = [], desired, observedGeneration } = status;
  const ready = conditions.find(({ type }) => type === "Ready");
  const isClaim = ready?.status === "True" && observedGeneration === metadata.generation;
  if (!isClaim || !desired || metadata.deletionTimestamp !== undefined) return undefined;
  return sizeOfAmounts(desired.replicaCpuMillicores, desired.replicaMemoryGb);
}

/** The sizes of all containers of a pod. */
function sizesOf({ spec }: Pod): string {
  return JSON.stringify(spec.containers.map(({ name, resources }) => [name, resources]));
}
