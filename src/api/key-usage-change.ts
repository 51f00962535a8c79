import type { KeyUsage } from "../records/key-usage.ts";
import { startOf, type UsedMinutes } from "./key-usage-notes.ts";

/**
 * The record keeps the entry of a key that is gone, which may come back: out of a backup, or because
 * somebody mends its Secret. Beyond this many entries, five times the keys that an organization may have,
 * it does not.
 */
const MOST_ENTRIES = 500;

export interface KeyUsageChange {
  /** By the resource ids of the keys. */
  readonly used: ReadonlyMap<string, Date>;
  /** Entries to be removed. */
  readonly removed: readonly string[];
}

/**
 * What is to be written into a record for it to tell these uses; nothing where it does already.
 *
 * An entry never goes back: only a later minute replaces it. So a wrong clock's entry from the future stays
 * until that time, or until a person removes it; what is ours and what is the clock's mistake nobody can tell.
 * An entry that cannot be read tells nothing, and is replaced.
 *
 * @param keys resource ids of the organization's keys as the cache has them. It may be a moment behind, so of
 *   the entries that are without a key those go first whose last use is longest ago.
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
