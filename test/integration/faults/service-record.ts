import type { PipeRecord } from "./pipe-record.ts";

interface Acceptance {
  readonly size: string;
  readonly version: bigint;
}

/** The pipes of a service, the accepted sizes, and when its pipes ran them. */
export class ServiceRecord {
  readonly id: string;
  readonly pipes = new Map<string, PipeRecord>();
  readonly #accepted: Acceptance[] = [];
  /** The last version at which a running pipe ran a size. */
  readonly #provenAt = new Map<string, bigint>();
  /** The version until which all pipes ran a size. */
  readonly #heldUntil = new Map<string, bigint>();
  #common: string | undefined;
  #wasEmptyUntil: bigint | "now" = "now";

  constructor(id: string) {
    this.id = id;
  }

  get living(): PipeRecord[] {
    return [...this.pipes.values()].filter((pipe) => pipe.object.metadata.deletionTimestamp === undefined);
  }

  accept(size: string, version: bigint): void {
    this.#accepted.push({ size, version });
    for (const pipe of this.pipes.values()) pipe.writes = 0;
  }

  /**
   * Index of the first request for a size, starting at `from`; -1 for none. If a size was requested several times, it is
   * unknown for which request it was applied, so the first one counts.
   */
  placeOf(size: string, from = 0): number {
    return this.#accepted.findIndex((each, place) => place >= from && each.size === size);
  }

  isProven(size: string): boolean {
    if (this.living.some((pipe) => provenSizes(pipe).includes(size))) return true;
    const acceptedAt = this.#accepted.findLast((each) => each.size === size)?.version ?? 0n;
    return (this.#provenAt.get(size) ?? -1n) > acceptedAt;
  }

  get rolling(): PipeRecord[] {
    return this.living.filter((pipe) => pipe.isRolling);
  }

  /** Pipes that roll out this size or get it in place, and do not run it yet. */
  unproven(size: string): PipeRecord[] {
    return this.living.filter(
      (pipe) =>
        (pipe.isRolling && !pipe.isBegunByOthers && pipe.size === size) ||
        (pipe.resizingTo === size && pipe.podsRun !== size),
    );
  }

  /** The size that was accepted last. */
  get latest(): string | undefined {
    return this.#accepted.at(-1)?.size;
  }

  /** Number of requests so far. */
  get requests(): number {
    return this.#accepted.length;
  }

  /** True if all pipes ran the size at the same time at or after this version. */
  ranSince(size: string, version: bigint): boolean {
    if (this.#wasEmptyUntil === "now" || this.#wasEmptyUntil > version) return true;
    return this.#common === size || (this.#heldUntil.get(size) ?? -1n) > version;
  }

  /** Call it after each change of a pipe. */
  note(version: bigint): void {
    const pipes = this.living;
    for (const size of pipes.flatMap(provenSizes)) this.#provenAt.set(size, version);
    const [first] = pipes;
    // Without replicas, a pipe has the size of its template at once.
    const hasItsSize = (pipe: PipeRecord) => pipe.isDone || !pipe.isRunning;
    const common = first && pipes.every((pipe) => hasItsSize(pipe) && pipe.size === first.size);
    const now = common ? first.size : undefined;
    if (this.#common !== undefined && this.#common !== now) this.#heldUntil.set(this.#common, version);
    this.#common = now;
    if (!first) this.#wasEmptyUntil = "now";
    else if (this.#wasEmptyUntil === "now") this.#wasEmptyUntil = version;
  }
}

/** The sizes that a pipe proves: that of its last complete rollout, and that of its pods. */
function provenSizes({ isRunning, isDone, size, podsRun }: PipeRecord): string[] {
  if (!isRunning) return [];
  return [isDone ? size : undefined, podsRun].filter((each) => each !== undefined);
}
