import type { Action } from "../actions.ts";
import type { ActivePod, Failure, Subject } from "../assessment.ts";
import { mayReplacePods } from "../pods.ts";
import { lastErrorOf, NO_ROOM, retriedAt } from "../retry.ts";
import { newRollout } from "../rollout/annotation.ts";
import { timeoutMsOf } from "../rollout/phase.ts";
import { dryRunSubject, isRoomFound, roomRecord, searchedAtMs } from "../rollout/way.ts";

/** A resize that the kubelet defers, of a pipe whose rollout would stop its old pods first. */
export interface Deferral {
  readonly type: "defer";
  /** Why it waits, for people. */
  readonly message: string;
  /** When room is searched for again, or the wait becomes a failure; in milliseconds since 1970. */
  readonly untilMs: number;
  readonly actions: readonly Action[];
  /** Present if the resize has waited for as long as a rollout may take. */
  readonly failure: Failure | undefined;
}

/**
 * The kubelet grants the resize as soon as its node has room, and nothing restarts. So the pod keeps waiting unless
 * another node has room now.
 *
 * @returns `undefined` if it does not wait any more
 */
export function waitForRoom(found: ActivePod, subject: Subject): Deferral | undefined {
  const { pipe, container, pods, nowMs } = subject;
  if (!pipe.stopsOldPodsFirst || !mayReplacePods(subject)) return undefined;
  if (isRoomFound(subject)) return undefined;
  const record = roomRecord(subject);
  const untilMs = searchedAtMs(subject);
  const rollout = newRollout(subject, 1);
  // If its own node had room, the kubelet would have granted the resize.
  const full = subject.active.filter(({ state }) => state === "deferred").map(({ pod }) => pod.nodeName);
  const search: Action = {
    type: "check-room",
    pipe,
    container,
    rollout,
    subject: dryRunSubject(subject),
    stopping: pods,
    fullNodes: full,
  };
  const isDue = untilMs <= nowMs;
  const deferredMs = Math.min(
    nowMs,
    found.record?.lastAtMs ?? found.pod.resizedAtMs ?? subject.leadingSinceMs,
  );
  const failsAtMs = deferredMs + timeoutMsOf(pipe, subject);
  const elsewhere = lastErrorOf(record)?.message ?? "other nodes are being searched for room";
  const message = `pod ${found.pod.metadata.name} waits for room on its node (${found.pod.resize?.message}); ${elsewhere}`;
  const attempts = record?.attempts ?? 1;
  return {
    type: "defer",
    message,
    untilMs: failsAtMs > nowMs ? Math.min(untilMs, failsAtMs) : untilMs,
    actions: isDue ? [search] : [],
    failure:
      failsAtMs > nowMs
        ? undefined
        : retriedAt(untilMs, { reason: NO_ROOM, message, attempts, atMs: record?.lastAtMs ?? nowMs }),
  };
}
