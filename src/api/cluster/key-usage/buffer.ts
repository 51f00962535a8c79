import type { ApiKey } from "../../../records/api-key.ts";

const MINUTE_MS = 60_000;

/** Resource IDs of keys to the minute of their last use, counted from 1970. */
export type UsedMinutes = ReadonlyMap<string, number>;

export function startOf(minute: number): Date {
  return new Date(minute * MINUTE_MS);
}

/**
 * Key usage that is not recorded in the cluster yet, to the minute. Each key has one entry, however often it is used,
 * and an entry never goes back, even if the clock does.
 */
export class KeyUsageBuffer {
  #byOrganization = new Map<string, Map<string, number>>();

  /**
   * Called by every request, so another use within the same minute costs only a comparison.
   *
   * @param now wall-clock time in milliseconds
   */
  note({ organizationId, id }: Pick<ApiKey, "organizationId" | "id">, now: number): void {
    this.#keep(organizationId, id, Math.floor(now / MINUTE_MS));
  }

  /** Removes and returns all entries, by organization. */
  take(): ReadonlyMap<string, UsedMinutes> {
    const taken = this.#byOrganization;
    this.#byOrganization = new Map();
    return taken;
  }

  /** Puts entries back that could not be written; newer ones win. */
  restore(organizationId: string, uses: UsedMinutes): void {
    for (const [id, minute] of uses) this.#keep(organizationId, id, minute);
  }

  #keep(organizationId: string, id: string, minute: number): void {
    let minutes = this.#byOrganization.get(organizationId);
    if (!minutes) {
      minutes = new Map();
      this.#byOrganization.set(organizationId, minutes);
    }
    const known = minutes.get(id);
    if (known === undefined || known < minute) minutes.set(id, minute);
  }
}
