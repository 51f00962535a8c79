import type { ApiKey } from "../records/api-key.ts";

const MINUTE_MS = 60_000;

/** Resource ids of keys, and the minute since 1970 in which each was last used. */
export type UsedMinutes = ReadonlyMap<string, number>;

export function startOf(minute: number): Date {
  return new Date(minute * MINUTE_MS);
}

/**
 * The uses of keys that are not written down yet, to the minute. What is noted never goes back, whatever the
 * clock does, and there is one note a key however often it is used.
 */
export class KeyUsageNotes {
  #byOrganization = new Map<string, Map<string, number>>();

  /**
   * On the path of every request: within a minute it only compares.
   *
   * @param now wall-clock time in milliseconds
   */
  note({ organizationId, id }: Pick<ApiKey, "organizationId" | "id">, now: number): void {
    this.#keep(organizationId, id, Math.floor(now / MINUTE_MS));
  }

  /** All notes by organization; from then on they are the caller's, and none are here. */
  take(): ReadonlyMap<string, UsedMinutes> {
    const taken = this.#byOrganization;
    this.#byOrganization = new Map();
    return taken;
  }

  /** Notes that could not be written, beside what was noted meanwhile. */
  putBack(organizationId: string, uses: UsedMinutes): void {
    for (const [id, minute] of uses) this.#keep(organizationId, id, minute);
  }

  #keep(organizationId: string, id: string, minute: number): void {
    let notes = this.#byOrganization.get(organizationId);
    if (!notes) {
      notes = new Map();
      this.#byOrganization.set(organizationId, notes);
    }
    const noted = notes.get(id);
    if (noted === undefined || noted < minute) notes.set(id, minute);
  }
}
