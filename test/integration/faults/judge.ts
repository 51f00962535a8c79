import { AdoptionJudge } from "./adoption-judge.ts";
import { CommitJudge } from "./commit-judge.ts";
import { type Entry, inOrder, type Kind, type Kinds, type Sighting, versionOf } from "./history.ts";
import { InPlaceJudge } from "./in-place-judge.ts";
import type { JudgeContext, Moment } from "./judge-context.ts";
import { PipeJudge } from "./pipe-judge.ts";
import { serviceOf } from "./pipe-view.ts";
import { ReadyJudge } from "./ready-judge.ts";
import { RestartJudge } from "./restart-judge.ts";
import { ScalingJudge } from "./scaling-judge.ts";
import { ServiceRecord } from "./service-record.ts";
import { StrategyJudge } from "./strategy-judge.ts";
import { Workloads } from "./workloads.ts";

/** Time in which a status must follow a change by another writer, unless the controller is hindered. */
const STATUS_FOLLOWS_MS = 10_000;

export interface Scope {
  /** Namespaces of pipes by ID of the service. */
  readonly services: ReadonlyMap<string, string>;
  readonly maxConcurrentRollouts: number;
  /** Time in which a status must follow a change by another writer; longer if the faults hinder the controller. */
  readonly statusFollowsMs?: number | undefined;
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
  const ordered = inOrder(entries);
  const times = timesOf(ordered);
  for (const [index, entry] of ordered.entries()) judge.see(entry, times[index] ?? 0);
  judge.end();
  const { violations, writes } = judge;
  return { violations, writes };
}

/**
 * The time of each event: when it or a later one was observed first, because a watch can be late.
 *
 * @param ordered by version
 */
function timesOf(ordered: readonly Entry[]): number[] {
  let earliest = Number.POSITIVE_INFINITY;
  return ordered
    .toReversed()
    .map((entry) => {
      if ("atMs" in entry) earliest = Math.min(earliest, entry.atMs);
      return earliest;
    })
    .toReversed();
}

/** Gives each event to the judges of its kind, in the order of the versions. */
class Judge {
  readonly violations: string[] = [];
  readonly writes: string[] = [];
  readonly #gaps: readonly Extract<Entry, { type: "gap" }>[];
  readonly #services: ReadonlyMap<string, ServiceRecord>;
  readonly #workloads = new Workloads();
  readonly #commits: CommitJudge;
  readonly #pipes: PipeJudge;
  readonly #inPlace: InPlaceJudge;
  readonly #scalings: ScalingJudge;
  readonly #strategies: StrategyJudge;
  readonly #ready: ReadyJudge;
  readonly #restarts: RestartJudge;
  readonly #adoptions: AdoptionJudge;
  #leader: string | undefined;
  #lastAtMs = 0;

  constructor(scope: Scope, entries: readonly Entry[]) {
    this.#gaps = entries.filter((entry) => entry.type === "gap");
    this.#services = new Map([...scope.services.keys()].map((id) => [id, new ServiceRecord(id)]));
    const serviceFor = (object: Kinds["Deployment"]) => {
      const id = serviceOf(object) ?? "";
      return scope.services.get(id) === object.metadata.namespace ? this.#services.get(id) : undefined;
    };
    const context: JudgeContext = {
      services: this.#services,
      maxConcurrentRollouts: scope.maxConcurrentRollouts,
      serviceFor,
      isUnseen: (kind, version) => this.#isUnseen(kind, version),
      wrote: (kind, object, detail = "") => this.#wrote(kind, object, detail),
      fault: (object, fault) => this.#fault(object, fault),
    };
    this.#commits = new CommitJudge(context, this.#workloads);
    this.#pipes = new PipeJudge(context, this.#workloads, this.#commits);
    this.#scalings = new ScalingJudge(context);
    this.#inPlace = new InPlaceJudge(context, this.#workloads, this.#pipes, this.#scalings);
    this.#strategies = new StrategyJudge(context);
    this.#restarts = new RestartJudge(context, this.#workloads);
    this.#adoptions = new AdoptionJudge(context, this.#workloads);
    this.#ready = new ReadyJudge({
      serviceOf: (object) => serviceFor(object)?.id,
      deploymentOf: (pod) => this.#workloads.deploymentOf(pod),
      isUnseen: (version) =>
        (["Deployment", "Pod", "PipeScaling"] as const).some((kind) => this.#isUnseen(kind, version)),
      fault: context.fault,
      followsMs: scope.statusFollowsMs ?? STATUS_FOLLOWS_MS,
    });
  }

  see(entry: Entry, atMs: number): void {
    const version = versionOf(entry);
    if (entry.type === "gap") return;
    if (entry.type === "accepted") {
      this.#services.get(entry.serviceId)?.accept(entry.size, version);
      return;
    }
    if (entry.type === "limited") {
      this.#restarts.limited(entry);
      return;
    }
    this.#lastAtMs = atMs;
    const moment = { version, atMs };
    if (entry.type === "gone") this.#gone(entry, moment);
    else this.#seen(entry, moment);
    this.#ready.passed(moment);
  }

  end(): void {
    this.#commits.end(this.#lastAtMs);
  }

  #seen(entry: Sighting, moment: Moment): void {
    const isBlind = entry.isInitial || this.#isUnseen(entry.kind, moment.version);
    switch (entry.kind) {
      case "Lease":
        this.#leader = entry.object.spec?.holderIdentity;
        return;
      case "Event":
        if (!entry.isInitial && entry.object.reportingController?.includes("pipe-scaling"))
          this.writes.push(`Event ${nameAt(entry.object)}`);
        return;
      case "ReplicaSet":
        if (!isBlind) this.#replicaSet(entry.object, moment);
        this.#commits.replicaSet(entry.object, isBlind, moment.atMs);
        this.#pipes.replicaSet(entry.object, moment.version, entry.isInitial);
        return;
      case "Pod":
        this.#pod(entry.object, isBlind, moment);
        this.#inPlace.pod(entry.object, isBlind, moment);
        this.#ready.pod(entry.object, moment);
        return;
      case "PipeScaling":
        this.#scalings.seen(entry.object, moment.version, entry.isInitial);
        this.#strategies.scaling(entry.object, moment.atMs);
        this.#restarts.scaling(entry.object);
        this.#adoptions.scaling(entry.object, isBlind);
        this.#ready.scaling(entry.object, moment);
        return;
      case "Deployment":
        this.#deployment(entry.object, isBlind, moment);
        return;
    }
  }

  #gone(entry: Sighting, moment: Moment): void {
    switch (entry.kind) {
      case "Lease":
        this.#leader = undefined;
        return;
      case "Event":
        return;
      case "ReplicaSet":
        this.#commits.goneReplicaSet(entry.object);
        return;
      case "Pod":
        this.#inPlace.gonePod(entry.object, moment);
        this.#ready.gonePod(entry.object, moment);
        return;
      case "PipeScaling":
        this.#scalings.gone(entry.object);
        this.#strategies.goneScaling(entry.object);
        this.#adoptions.goneScaling(entry.object);
        this.#ready.goneScaling(entry.object, moment);
        return;
      case "Deployment":
        this.#pipes.gone(entry.object, moment.version);
        this.#commits.goneDeployment(entry.object);
        this.#workloads.deployments.delete(entry.object.metadata.uid);
        this.#ready.goneDeployment(entry.object, moment);
        return;
    }
  }

  #deployment(object: Kinds["Deployment"], isBlind: boolean, moment: Moment): void {
    const { uid } = object.metadata;
    const before = this.#workloads.deployments.get(uid);
    this.#workloads.deployments.set(uid, object);
    this.#adoptions.deployment(before, object, isBlind, moment);
    if (before && !isBlind) this.#restarts.deployment(before, object, moment);
    this.#pipes.deployment(before, object, isBlind, moment);
    if (before && !isBlind) {
      this.#strategies.deployment(before, object, moment.atMs);
      this.#commits.deployment(before, object, moment.atMs);
      this.#inPlace.deployment(before, object, moment);
    } else if (before) this.#commits.unseenDeployment(before, object, moment.atMs);
    this.#ready.deployment(object, moment);
  }

  #pod(object: Kinds["Pod"], isBlind: boolean, moment: Moment): void {
    const before = this.#workloads.pods.get(object.metadata.uid)?.object;
    this.#restarts.pod(before, object, moment);
    if (!isBlind) this.#adoptions.pod(before, object);
  }

  #replicaSet(object: Kinds["ReplicaSet"], { atMs }: Moment): void {
    const { uid } = object.metadata;
    const deployment = this.#workloads.deployments.get(this.#workloads.ownerOf(uid) ?? "");
    const before = this.#workloads.replicaSets.get(uid);
    if (deployment) this.#strategies.replicaSet(before, object, deployment, atMs);
  }

  #wrote(kind: Kind, object: Kinds[Kind], detail: string): void {
    this.writes.push(`${kind} ${nameAt(object)}${detail}`);
    const version = BigInt(object.metadata.resourceVersion);
    if (!this.#leader && !this.#isUnseen("Lease", version) && !this.#isUnseen(kind, version))
      this.#fault(object, "it was written while there was no leader");
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
