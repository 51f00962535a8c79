/** An API server that has started knows all roles within this time. */
const LOADED_MS = 60_000;

/** Several API servers that start one after the other name the same roles, but not all the time. */
const FORGOTTEN_MS = 120_000;

/** A deleted role may be created again. A refused watch is repeated much sooner. */
const DELETED_FORGOTTEN_MS = 3_600_000;

interface Sightings {
  readonly firstAtMs: number;
  readonly lastAtMs: number;
}

/**
 * Distinguishes roles that were deleted, but still have a binding, from those that an API server has not loaded yet. As
 * long as the binding exists, every refusal of RBAC names the former as missing.
 */
export class MissingRoles {
  readonly #sightings = new Map<string, Sightings>();

  /**
   * Call it for each refusal with the roles that it names.
   *
   * @param nowMs monotonic time
   * @returns true if all of them were deleted
   */
  areDeleted(roles: readonly string[], nowMs: number): boolean {
    for (const [role, seen] of this.#sightings) {
      const keptMs = isDeleted(seen) ? DELETED_FORGOTTEN_MS : FORGOTTEN_MS;
      if (nowMs - seen.lastAtMs > keptMs) this.#sightings.delete(role);
    }
    const sightings = roles.map((role) => {
      const seen = { firstAtMs: this.#sightings.get(role)?.firstAtMs ?? nowMs, lastAtMs: nowMs };
      this.#sightings.set(role, seen);
      return seen;
    });
    return sightings.every(isDeleted);
  }
}

function isDeleted({ firstAtMs, lastAtMs }: Sightings): boolean {
  return lastAtMs - firstAtMs >= LOADED_MS;
}
