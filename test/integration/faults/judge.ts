import { CONTROLLER_FIELD_MANAGER } from "../../../src/crd/names.ts";
import { mergePatch } from "../../../src/runtime/merge-patch.ts";
import { type Entry, inOrder, type Kind, type Kinds, type Sighting, versionOf } from "./history.ts";
import { InPlaceJudge } from "./in-place-judge.ts";
import { PipeRecord } from "./pipe-record.ts";
import { isOurWrite, pipeContainer, serviceOf } from "./pipe-view.ts";
import { recreationFaults, requestedSize } from "./recreation.ts";
import { ServiceRecord } from "./service-record.ts";
import { isSameBesideOurs, isSizedByUs, ownedBeyond, sizeIn } from "./sized-object.ts";
import { statusFaults } from "./status-faults.ts";

export interface Scope {
  /** Namespaces of pipes by ID of the service. */
  readonly services: ReadonlyMap<string, string>;
  readonly maxConcurrentRollouts: number;
}

export interface Judgement {
  /** A sentence for each violation, with the version of the object. */
  readonly violations: readonly string[];
  /** All writes of the controller, without those to its Lease. */
  readonly writes: readonly string[];
}

/** Checks a history against the invariants of docs/explanation/invariants.md. A pure function. */
export function judge(entries: readonly Entry[], scope: Scope): Judgement {
  const judge = new Judge(scope, entries);
  for (const entry of inOrder(entries)) judge.see(entry);
  judge.end();
  const { violations, writes } = judge;
  return { violations, writes };
}

/** Maximum number of writes of the controller to one Deployment for one request, whatever other writers do. */
const MOST_WRITES = 20;

class Judge {
  readonly violations: string[] = [];
  readonly writes: string[] = [];
  readonly #scope: Scope;
  readonly #gaps: readonly Extract<Entry, { type: "gap" }>[];
  readonly #services: ReadonlyMap<string, ServiceRecord>;
  readonly #deployments = new Map<string, Kinds["Deployment"]>();
  readonly #scalings = new Map<string, Kinds["PipeScaling"]>();
  readonly #knownSets = new Set<string>();
  readonly #inPlace = new InPlaceJudge({
    pipeOf: (deploymentUid) => this.#pipeOf(deploymentUid),
    wrote: (kind, object) => {
      this.writes.push(`${kind} ${nameAt(object)}`);
      this.#mustLead(kind, object, BigInt(object.metadata.resourceVersion));
    },
    pace: ({ pipe, service }, size) => this.#pace(pipe, service, size),
    fault: (object, fault) => this.#fault(object, fault),
    scalingOf: ({ id }) => [...this.#scalings.values()].find(({ metadata }) => metadata.name === id),
  });
  #leader: string | undefined;
  #lastAtMs = 0;

  constructor(scope: Scope, entries: readonly Entry[]) {
    this.#scope = scope;
    this.#gaps = entries.filter((entry) => entry.type === "gap");
    this.#services = new Map([...scope.services.keys()].map((id) => [id, new ServiceRecord(id)]));
  }

  see(entry: Entry): void {
    const version = versionOf(entry);
    if (entry.type === "gap") return;
    if (entry.type === "accepted") {
      this.#services.get(entry.serviceId)?.accept(entry.size, version);
      return;
    }
    const isGone = entry.type === "gone";
    this.#lastAtMs = Math.max(this.#lastAtMs, entry.atMs);
    switch (entry.kind) {
      case "Lease":
        this.#leader = isGone ? undefined : entry.object.spec?.holderIdentity;
        return;
      case "Event":
        if (!isGone && !entry.isInitial && entry.object.reportingController?.includes("pipe-scaling"))
          this.writes.push(`Event ${nameAt(entry.object)}`);
        return;
      case "ReplicaSet":
        if (isGone) this.#inPlace.goneReplicaSet(entry.object);
        else this.#replicaSet(entry.object, version, entry.isInitial);
        return;
      case "Pod":
        if (isGone) this.#inPlace.gonePod(entry.object);
        else this.#inPlace.pod(entry.object, this.#isBlind(entry, version));
        return;
      case "PipeScaling":
        this.#scaling(entry.object, version, isGone, entry.isInitial);
        return;
      case "Deployment":
        if (isGone) this.#goneDeployment(entry.object, version);
        else this.#deployment(entry.object, version, entry);
        return;
    }
  }

  end(): void {
    this.#inPlace.end(this.#lastAtMs);
  }

  #deployment(
    object: Kinds["Deployment"],
    version: bigint,
    { isInitial, atMs }: Pick<Sighting, "isInitial" | "atMs">,
  ): void {
    const { uid } = object.metadata;
    const before = this.#deployments.get(uid);
    this.#deployments.set(uid, object);
    const was = before && this.#serviceFor(before);
    const is = this.#serviceFor(object);
    const isBlind = isInitial || this.#isUnseen("Deployment", version);
    const isOurs = before !== undefined && isOurWrite(before, object);
    if (isOurs) this.#ourWrite(before, object, was, version, isBlind);
    const pipe = was === is ? is?.pipes.get(uid) : undefined;
    if (pipe && before) {
      const isSized = isSizedByUs(before, object, pipeContainer(before));
      pipe.become(object, isSized ? "us" : "others", isBlind);
      const isResized = pipe.size !== sizeIn(before, pipeContainer(before));
      if (is && isOurs && !isBlind && isResized && pipe.isRolling && !pipe.isRolledBack)
        this.#pace(pipe, is, pipe.size);
    } else {
      was?.pipes.delete(uid);
      is?.pipes.set(uid, new PipeRecord(object, isBlind));
    }
    this.#inPlace.deployment(isBlind ? undefined : before, object, atMs);
    for (const service of new Set([was, is])) service?.note(version);
  }

  #goneDeployment(object: Kinds["Deployment"], version: bigint): void {
    this.#deployments.delete(object.metadata.uid);
    this.#inPlace.goneDeployment(object.metadata.uid);
    for (const service of this.#services.values()) {
      if (service.pipes.delete(object.metadata.uid)) service.note(version);
    }
  }

  #ourWrite(
    before: Kinds["Deployment"],
    after: Kinds["Deployment"],
    service: ServiceRecord | undefined,
    version: bigint,
    isBlind: boolean,
  ): void {
    this.writes.push(`Deployment ${nameAt(after)}`);
    this.#mustLead("Deployment", after, version);
    const pipe = service?.pipes.get(after.metadata.uid);
    if (!service || !pipe) {
      this.#fault(after, "the controller changed it, but it is not a pipe of an observed service");
      return;
    }
    if (!isBlind && !isSameBesideOurs(before, after, pipeContainer(before)))
      this.#fault(after, "the controller changed more of it than the size of its pipe container");
    pipe.writes += 1;
    if (pipe.writes === MOST_WRITES + 1)
      this.#fault(after, `the controller wrote it more than ${MOST_WRITES} times for one request`);
    const ownedBefore = ownedBeyond(before);
    for (const leaf of ownedBeyond(after).filter((each) => !ownedBefore.includes(each)))
      this.#fault(after, `the controller became the owner of ${leaf}`);
    const size = sizeIn(after, pipeContainer(before));
    if (size !== pipe.size && size !== undefined) this.#given(pipe, service, size, after);
  }

  /** Checks a size that the controller applied: an accepted one, or once the last size that the pipe ran. */
  #given(pipe: PipeRecord, service: ServiceRecord, size: string, after: Kinds["Deployment"]): void {
    const place = service.placeOf(size, pipe.newestGiven);
    if (place !== -1) {
      pipe.newestGiven = place;
      pipe.isRolledBack = false;
      return;
    }
    const isRollback = size === pipe.completedSize && !pipe.isDone && !pipe.isRolledBack;
    if (!isRollback) {
      this.#fault(
        after,
        service.placeOf(size) === -1
          ? `the controller applied ${size}, which was never requested`
          : `the controller replaced ${pipe.size} by the older request ${size}, which is not the one allowed rollback to ${pipe.completedSize}`,
      );
    }
    pipe.isRolledBack = true;
  }

  /** Checks the limits after a size was applied, with the rollouts that are in progress then. */
  #pace(pipe: PipeRecord, service: ServiceRecord, size = ""): void {
    const rolling = service.rolling(size);
    const names = rolling.map((each) => each.name).join(", ");
    const limit = Math.max(3, Math.ceil(service.living.length / 4));
    if (rolling.length > limit)
      this.#fault(pipe.object, `${rolling.length} pipes roll out at once (${names}), more than ${limit}`);
    const atSize = rolling.filter((each) => each.size === size || each.resizingTo === size);
    if (atSize.length > 1 && !service.isProven(size))
      this.#fault(pipe.object, `no pipe has proven ${size} yet, but ${names} roll it out at once`);
    const overall = [...this.#services.values()].flatMap((each) => each.rolling()).length;
    if (overall > this.#scope.maxConcurrentRollouts)
      this.#fault(pipe.object, `${overall} pipes of all services roll out at once`);
  }

  #replicaSet(object: Kinds["ReplicaSet"], version: bigint, isInitial: boolean): void {
    const { uid, ownerReferences = [] } = object.metadata;
    this.#inPlace.replicaSet(object, isInitial || this.#isUnseen("ReplicaSet", version));
    if (this.#knownSets.has(uid)) return;
    this.#knownSets.add(uid);
    if (isInitial || this.#isUnseen("Deployment", version)) return;
    const owner = this.#deployments.get(ownerReferences[0]?.uid ?? "");
    const service = owner && this.#serviceFor(owner);
    const pipe = owner && service?.pipes.get(owner.metadata.uid);
    const size = owner && sizeIn(object, pipeContainer(owner));
    if (!service || !pipe || size === undefined) return;
    if (service.placeOf(size) === -1 && !pipe.sizesOfOthers.has(size))
      this.#fault(object, `a ReplicaSet of ${pipe.name} was created with ${size}, which was never requested`);
  }

  #scaling(object: Kinds["PipeScaling"], version: bigint, isGone: boolean, isInitial: boolean): void {
    const { uid } = object.metadata;
    const before = this.#scalings.get(uid);
    const service = this.#services.get(object.metadata.name);
    if (isGone) {
      this.#scalings.delete(uid);
      service?.delete(object);
    } else this.#scalings.set(uid, object);
    if (isGone || isInitial || this.#isUnseen("PipeScaling", version)) return;
    const isOurStatus =
      before !== undefined && JSON.stringify(before.status) !== JSON.stringify(object.status);
    const isMadeByUs =
      before === undefined &&
      (object.metadata.managedFields ?? []).some(({ manager }) => manager === CONTROLLER_FIELD_MANAGER);
    if (!isOurStatus && !isMadeByUs) return;
    const change = mergePatch(before?.status ?? {}, object.status ?? {});
    this.writes.push(`PipeScaling ${nameAt(object)} (${JSON.stringify(change)})`);
    this.#mustLead("PipeScaling", object, version);
    if (!before) {
      this.#recreated(object, version);
      return;
    }
    // The write had a precondition on this version, so the status must have been true at some time since then.
    const since = BigInt(before.metadata.resourceVersion);
    const ran = (size: string) =>
      this.#isUnseen("Deployment", version) || service === undefined || service.ranSince(size, since);
    for (const fault of statusFaults(object, ran)) this.#fault(object, fault);
  }

  /** Accepts its size, because the controller derived it from the pipes, without a new request. */
  #recreated(object: Kinds["PipeScaling"], version: bigint): void {
    const service = this.#services.get(object.metadata.name);
    if (!service || this.#isUnseen("Deployment", version)) return;
    for (const fault of recreationFaults(object, service.deletedScaling, service.living))
      this.#fault(object, fault);
    const size = requestedSize(object);
    if (size !== undefined && !object.spec?.suspend) service.accept(size, version);
  }

  #mustLead(kind: Kind, object: Kinds[Kind], version: bigint): void {
    if (!this.#leader && !this.#isUnseen("Lease", version) && !this.#isUnseen(kind, version))
      this.#fault(object, "it was written while there was no leader");
  }

  #pipeOf(deploymentUid: string) {
    const object = this.#deployments.get(deploymentUid);
    const service = object && this.#serviceFor(object);
    const pipe = service?.pipes.get(deploymentUid);
    return service && pipe && { pipe, service };
  }

  #isBlind({ kind, isInitial }: Pick<Sighting, "kind" | "isInitial">, version: bigint): boolean {
    return isInitial || this.#isUnseen(kind, version);
  }

  #serviceFor(object: Kinds["Deployment"]): ServiceRecord | undefined {
    const id = serviceOf(object) ?? "";
    return this.#scope.services.get(id) === object.metadata.namespace ? this.#services.get(id) : undefined;
  }

  #isUnseen(kind: Kind, version: bigint): boolean {
    return this.#gaps.some((gap) => gap.kind === kind && gap.after < version && version <= gap.until);
  }

  #fault(object: Kinds[Kind], fault: string): void {
    this.violations.push(`${nameAt(object)}: ${fault}.`);
  }
}

function nameAt({ metadata }: Kinds[Kind]): string {
  return `${metadata.name} at version ${metadata.resourceVersion}`;
}
