import type { KeyUsage } from "../../../records/key-usage.ts";
import { startOf, type UsedMinutes } from "./buffer.ts";

/**
 * Number of entries above which those of deleted keys are removed, five times the number of keys that an organization
 * may have. Until then they stay, because a key may return from a backup, or when someone repairs its Secret.
 */
const MOST_ENTRIES = 500;

export interface KeyUsageChange {
  /** Time of the last use for each resource ID of a key. */
  readonly used: ReadonlyMap<string, Date>;
  /** Entries to be removed. */
  readonly removed: readonly string[];
}

/**
 * Returns the change that adds this usage to a record; `undefined` if the record already has it.
 *
 * Only a later minute replaces an entry, so an entry from the future, written by a wrong clock, stays until that time
 * or until a person removes it. A malformed entry is replaced.
 *
 * @param keys resource IDs of the organization's keys in the cache, which may be a moment behind. So only the entries
 *   above `MOST_ENTRIES` are removed: those without a key, the least recently used first.
 */
export function keyUsageChange(
  recorded: KeyUsage,
  uses: UsedMinutes,
  keys: ReadonlySet<string>,
): KeyUsageChange | undefined {
  const used = new Map<string, Date>();
  for (const [id, minute] of uses) {
    const time = startOf(minute);
    if (timeIn(recorded, id) < time.getTime()) used.set(id, time);
  }
  if (used.size === 0) return undefined;
  const excess = new Set([...recorded.keys(), ...used.keys()]).size - MOST_ENTRIES;
  if (excess <= 0) return { used, removed: [] };
  const keyless = [...recorded.keys()].filter((id) => !keys.has(id) && !used.has(id));
  const removed = keyless.toSorted((a, b) => timeIn(recorded, a) - timeIn(recorded, b)).slice(0, excess);
  return { used, removed };
}

function timeIn(recorded: KeyUsage, id: string): number {
  const entry = recorded.get(id);
  return entry?.ok ? entry.value.getTime() : -Infinity;
}
