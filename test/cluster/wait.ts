import { setTimeout as delay } from "node:timers/promises";
import { inspect } from "node:util";

export interface WaitOptions {
  /** Completes the error "waited 60 s for …": "the rollout to complete". */
  readonly what: string;
  readonly timeoutMs?: number;
  /** How often to look. */
  readonly intervalMs?: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Polls until `observe` returns something other than undefined, null or false, and
 * returns that.
 *
 * For conditions of the real world (a cluster, a process) that nothing announces.
 * An `observe` that throws counts as not yet; after the time the error says what
 * was waited for and what was last seen, be it a value or an error.
 */
export async function waitFor<T>(
  observe: () => T | Promise<T>,
  { what, timeoutMs = 60_000, intervalMs = 50, signal }: WaitOptions,
): Promise<Exclude<T, undefined | null | false>> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    signal?.throwIfAborted();
    const seen = await look(observe);
    if ("value" in seen && isReached(seen.value)) return seen.value;
    if (performance.now() >= deadline) throw timeout(what, timeoutMs, seen);
    await delay(intervalMs, undefined, signal ? { signal } : {});
  }
}

type Seen<T> = { value: T } | { error: unknown };

async function look<T>(observe: () => T | Promise<T>): Promise<Seen<T>> {
  try {
    return { value: await observe() };
  } catch (error) {
    return { error };
  }
}

function isReached<T>(value: T): value is Exclude<T, undefined | null | false> {
  return value !== undefined && value !== null && value !== false;
}

function timeout(what: string, timeoutMs: number, seen: Seen<unknown>): Error {
  const last =
    "value" in seen
      ? `last seen: ${inspect(seen.value, { depth: 6 })}`
      : `the last look failed: ${inspect(seen.error)}`;
  return new Error(`waited ${timeoutMs / 1000} s for ${what}; ${last}`, {
    cause: "error" in seen ? seen.error : undefined,
  });
}
