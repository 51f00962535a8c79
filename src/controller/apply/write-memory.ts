import type { KubeObject } from "../../kube/objects.ts";
import type { Clock } from "../../runtime/clock.ts";
import { elapsedMs } from "../../runtime/elapsed.ts";
import type { Store } from "../../runtime/store.ts";
import { WallTime } from "../../runtime/wall-time.ts";
import { runsOf } from "../in-place/resize-pods.ts";
import { isRunning, namedContainerOf, type PodView } from "../observe/pod-view.ts";
import { resourcesOf } from "../observe/resources.ts";
import {
  COMMITS,
  isOpen,
  READ_LATER,
  WRITE_PURPOSES,
  type WriteError,
  type WritePurpose,
  type WriteRecord,
  type WriteRecords,
  type WrittenAnnotation,
} from "../observe/write-record.ts";
import { isApplied } from "../pods.ts";
import { isOfWrite, lastErrorOf, SERIES_END_MS, TRUCE_MS } from "../retry.ts";

/** After this time, the watch has delivered the result of a write, even if no read has shown it. */
const MAX_UNRESOLVED_MS = 5 * 60_000;

/** Writes that may start a rollout. */
const ROLLOUTS: readonly WritePurpose[] = ["resize", "roll-back", "replace-pods"];

/** Replaced pods count as a rollout for this long. The workload shows it only after Kubernetes has responded. */
const REPLACED_MS = 30_000;

/** The writes of a commit to its workload. */
const PAIRED: Partial<Record<WritePurpose, WritePurpose>> = { commit: "resume", resume: "commit" };

/** Writes that set the next size in the template. */
const SIZED: readonly WritePurpose[] = ["resize", "commit"];

/** Writes that are counted for one size of the template. */
const OF_SIZE: readonly WritePurpose[] = [...SIZED, "replace-pods"];

/** Dry runs and searches. The age of a result counts from the response, which may take a minute. */
const CHECKS: readonly WritePurpose[] = ["dry-run", "dry-run-commit", "check-room"];

/** A write that has begun. */
export interface Attempt {
  readonly uid: string;
  readonly purpose: WritePurpose;
  /** Identifies the write; absent for the last write to the object with this purpose. */
  readonly number?: number;
}

interface Entry extends Attempt, Omit<WriteRecord, "attempts" | "besides"> {
  /**
   * Number of attempts before this one that succeeded or were refused. Other failures show nothing about the wanted
   * state, so they count only in `series`.
   */
  readonly decided: number;
  /** The object left the cache during the write, so the record ends with the write. */
  readonly isLeft?: boolean;
}

/**
 * The last writes of this process to each object, for each purpose, with their outcomes. They bound repeated writes:
 * the delays before a retry are computed from these records (retry.ts), and for a rollout also from the annotation. A
 * record ends with its object, but not before a write in flight, because a workload that only lost its labels may still
 * have to be released.
 *
 * Times are of the monotonic clock, so a jump of the clock neither ends nor extends a delay.
 */
export class WriteMemory implements WriteRecords {
  readonly #clock: Pick<Clock, "now" | "monotonic">;
  readonly #wallTime: WallTime;
  readonly #records = new Map<string, Entry>();
  #begun = 0;
  /** Keys of the records without a known outcome. */
  readonly #open = new Set<string>();
  /** Purpose of the last write of the annotation, by UID. */
  readonly #annotations = new Map<string, WritePurpose>();
  /** When pods of each pipe were last replaced, by UID. */
  readonly #replaced = new Map<string, number>();
  /** Runs of the containers of pods whose resize was last seen as pending, by UID of the pod. */
  readonly #pendingRuns = new Map<string, string>();

  constructor(
    stores: readonly Pick<Store<KubeObject>, "onChange">[],
    clock: Pick<Clock, "now" | "monotonic">,
  ) {
    this.#clock = clock;
    this.#wallTime = new WallTime(clock);
    for (const store of stores) {
      store.onChange((change) => {
        if (change.type === "deleted") this.forgetAll(change.previous.metadata.uid);
      });
    }
  }

  get(uid: string, purpose: WritePurpose): WriteRecord | undefined {
    const record = this.#records.get(keyOf({ uid, purpose }));
    if (!record) return undefined;
    const { decided, series, undecidedSinceMs, lastAtMs } = record;
    return {
      ...record,
      attempts: isUndecided(record) ? series : decided + 1,
      besides: this.#besides(record),
      undecidedSinceMs: this.#wallTime.of(undecidedSinceMs),
      lastAtMs: this.#wallTime.of(lastAtMs),
    };
  }

  #besides({ uid, purpose, subject }: Entry): number {
    const paired = PAIRED[purpose];
    const other = paired && this.#records.get(keyOf({ uid, purpose: paired }));
    if (other?.subject !== subject) return 0;
    return elapsedMs(other.lastAtMs, this.#clock.monotonic()) < SERIES_END_MS ? other.series : 0;
  }

  pendingRuns(uid: string): string | undefined {
    return this.#pendingRuns.get(uid);
  }

  /** Call it with each version of a pod. Later versions do not show when its resize was granted. */
  seePod(pod: PodView): void {
    if (pod.resize?.type !== "PodResizePending") return;
    const name = namedContainerOf(pod);
    const own = pod.containers.find((each) => each.name === name);
    // Another container waits, and this one has its size, so a restart says something about that.
    if (own?.resources && isApplied(own, resourcesOf({ name: own.name, resources: own.resources }))) return;
    if (isRunning(pod)) this.#pendingRuns.set(pod.metadata.uid, runsOf(pod));
  }

  /** Number of attempts that succeeded or were refused before the last one. */
  decidedBefore(uid: string, purpose: WritePurpose): number {
    return this.#records.get(keyOf({ uid, purpose }))?.decided ?? 0;
  }

  lastAnnotation(uid: string): ReturnType<WriteRecords["lastAnnotation"]> {
    const purpose = this.#annotations.get(uid);
    const record = purpose && this.get(uid, purpose);
    if (record?.outcome.type !== "done" || !record.outcome.annotation) return undefined;
    return { ...record.outcome.annotation, attempts: record.attempts, lastAtMs: record.lastAtMs };
  }

  /** Rollouts that may have started but are not in the cache yet. */
  unresolvedRollouts(): number {
    for (const [uid, atMs] of this.#replaced) {
      if (elapsedMs(atMs, this.#clock.monotonic()) >= REPLACED_MS) this.#replaced.delete(uid);
    }
    return this.#openOf(ROLLOUTS).length + this.#replaced.size;
  }

  /** UIDs of the workloads that may be held for a commit without the cache showing it yet. */
  unresolvedCommits(): ReadonlySet<string> {
    return new Set(this.#openOf(COMMITS).map(({ uid }) => uid));
  }

  #openOf(purposes: readonly WritePurpose[]): Entry[] {
    const since = this.#clock.monotonic() - MAX_UNRESOLVED_MS;
    const open = [...this.#open].flatMap((key) => this.#records.get(key) ?? []);
    return open.filter(({ purpose, lastAtMs }) => purposes.includes(purpose) && lastAtMs > since);
  }

  /**
   * Call it before a write.
   *
   * @param known.attempts number of this attempt, if the object shows it
   */
  begin(
    uid: string,
    purpose: WritePurpose,
    subject: string,
    { attempts = 1, ...known }: Partial<Pick<WriteRecord, "attempts" | "runs" | "isRequested">> = {},
  ): Attempt {
    const nowMs = this.#clock.monotonic();
    const last = this.#records.get(keyOf({ uid, purpose }));
    const isRepeated = last?.subject === subject && elapsedMs(last.lastAtMs, nowMs) <= TRUCE_MS;
    const before = isRepeated ? last : undefined;
    if (known.runs !== undefined) this.#pendingRuns.delete(uid);
    const isInSeries = before !== undefined && elapsedMs(before.lastAtMs, nowMs) < SERIES_END_MS;
    this.#begun += 1;
    const attempt = { uid, purpose, number: this.#begun };
    this.#set({
      ...attempt,
      subject,
      ...known,
      decided: Math.max(decidedUntil(before), attempts - 1),
      series: isInSeries ? before.series + 1 : 1,
      undecidedSinceMs: before && isUndecided(before) ? before.undecidedSinceMs : nowMs,
      lastAtMs: nowMs,
      outcome: { type: "pending", before: lastErrorOf(before) },
    });
    return attempt;
  }

  done(attempt: Attempt, annotation?: WrittenAnnotation, generation = 0): void {
    const doneAtMs = CHECKS.includes(attempt.purpose) ? this.#clock.monotonic() : undefined;
    const isSettled = this.#settle(attempt, { type: "done", generation, annotation }, doneAtMs);
    if (attempt.purpose === "replace-pods") this.#replaced.set(attempt.uid, this.#clock.monotonic());
    if (isSettled && annotation) this.#annotations.set(attempt.uid, attempt.purpose);
    if (SIZED.includes(attempt.purpose)) this.#endCounts(attempt);
  }

  /** Remembers a report, which counts as a write that succeeded. */
  note(uid: string, purpose: WritePurpose, subject: string): void {
    this.done(this.begin(uid, purpose, subject));
  }

  isNoted(uid: string, purpose: WritePurpose, subject: string): boolean {
    return this.#records.get(keyOf({ uid, purpose }))?.subject === subject;
  }

  /**
   * The template left a size because we wrote the next one, so the writes of the size before were not undone. A size
   * that is tried again can be rolled back again, and is checked again.
   */
  #endCounts({ uid, purpose }: Attempt): void {
    const subjectOf = (each: WritePurpose) => this.#records.get(keyOf({ uid, purpose: each }))?.subject;
    const outdated = OF_SIZE.filter((each) => subjectOf(each) !== subjectOf(purpose));
    for (const each of [...outdated, ...CHECKS, "roll-back"] as const) this.forget(uid, each);
  }

  failed(attempt: Attempt, error: WriteError, generation: number): void {
    // The delay before the next attempt starts at the response.
    this.#settle(attempt, { type: "failed", error, generation }, this.#clock.monotonic());
  }

  unknown(attempt: Attempt, error: WriteError): void {
    this.#settle(attempt, { type: "unknown", error });
  }

  /** Call it after a read of the object, which shows whether the write succeeded. */
  resolve(uid: string, generation: number): void {
    for (const purpose of READ_LATER) {
      const outcome = this.#records.get(keyOf({ uid, purpose }))?.outcome;
      if (outcome?.type === "unknown")
        this.#settle({ uid, purpose }, { type: "failed", error: outcome.error, generation });
    }
  }

  /** Call it when the last writes no longer count, for example because the object has the wanted state. */
  forget(uid: string, purpose: WritePurpose): void {
    const key = keyOf({ uid, purpose });
    this.#records.delete(key);
    this.#open.delete(key);
  }

  /** Call it when the object is gone or is being deleted, or nothing is written to it any more. */
  forgetAll(uid: string): void {
    for (const purpose of WRITE_PURPOSES) {
      const record = this.#records.get(keyOf({ uid, purpose }));
      if (record?.outcome.type === "pending") this.#set({ ...record, isLeft: true });
      else this.forget(uid, purpose);
    }
    this.#annotations.delete(uid);
    this.#replaced.delete(uid);
    this.#pendingRuns.delete(uid);
  }

  /** @returns false if the object left the cache meanwhile, or if another attempt has begun */
  #settle(attempt: Attempt, outcome: WriteRecord["outcome"], lastAtMs?: number): boolean {
    const record = this.#records.get(keyOf(attempt));
    if (record && attempt.number !== undefined && attempt.number !== record.number) return false;
    if (!record || record.isLeft) {
      this.forget(attempt.uid, attempt.purpose);
      return false;
    }
    this.#set({ ...record, outcome, lastAtMs: lastAtMs ?? record.lastAtMs });
    return true;
  }

  #set(record: Entry): void {
    const key = keyOf(record);
    this.#records.set(key, record);
    if (isOpen(record)) this.#open.add(key);
    else this.#open.delete(key);
  }
}

function keyOf({ uid, purpose }: Attempt): string {
  return `${uid} ${purpose}`;
}

function decidedUntil(last: Entry | undefined): number {
  if (!last) return 0;
  return last.decided + (isUndecided(last) ? 0 : 1);
}

/** True if the last attempt failed for a reason that shows nothing about the wanted state. */
function isUndecided(record: Pick<WriteRecord, "outcome">): boolean {
  return isOfWrite(lastErrorOf(record)?.reason ?? "");
}
