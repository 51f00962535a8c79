import { setTimeout as delay } from "node:timers/promises";
import { inspect } from "node:util";

export interface WaitOptions {
  /** Completes the sentence "waited 60 s for …", such as "the rollout to complete". */
  readonly what: string;
  readonly timeoutMs?: number;
  /** Interval between two attempts. */
  readonly intervalMs?: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Polls until `observe` returns something other than undefined, null or false, and returns it. For conditions of a
 * cluster or a process that send no event. If `observe` throws, it is called again.
 *
 * @throws Error after the timeout, with the last value or error
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
      : `the last attempt failed: ${inspect(seen.error)}`;
  return new Error(`waited ${timeoutMs / 1000} s for ${what}; ${last}`, {
    cause: "error" in seen ? seen.error : undefined,
  });
}
