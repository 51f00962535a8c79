/** A delay that doubles with each attempt. */
export interface Doubling {
  readonly firstMs: number;
  readonly mostMs: number;
}

/** The times for which the controller waits before it gives up or tries again, in milliseconds. Tests shorten them. */
export interface Timeouts {
  /**
   * Until a deferred resize of a pod fails. It reserves room on the node, which a rollout may need. If the rollout would
   * stop old pods first, until room is searched for on other nodes.
   */
  readonly deferredMs: number;
  /** Before the nodes are searched for room again, for a pipe that stops its old pods first. */
  readonly roomRetry: Doubling;
  /** For which room that was found is expected to be there still. */
  readonly roomFoundMs: number;
  /** For which all services share one list of nodes, to see whether a node is large enough. */
  readonly nodesMs: number;
  /** Until any other resize of a pod fails. The kubelet retries an error every 10 to 15 s. */
  readonly resizeMs: number;
  /** Until a commit ends without a response of the Deployment controller, which responds within 200 ms unless it restarts. */
  readonly commitMs: number;
  /** Until other pipes no longer wait for a commit that cannot end, such as one whose writes fail. */
  readonly stuckCommitMs: number;
  /** For which a pipe with a smaller memory in place must be available before others follow. */
  readonly smallerMemoryMs: number;
  /** For which a container that runs out of memory shows that the smaller memory does not suffice. */
  readonly outOfMemoryMs: number;
  /** Since its last restart until a pipe proves its size. It is the longest delay of a kubelet between two restarts. */
  readonly crashLoopMs: number;
  /** For the scheduler to try an unschedulable pod again after another pod has ended. Its longest delay is 10 s. */
  readonly rescheduleMs: number;
  /**
   * Until an orphan that the controller paused is resumed. It may be a pipe of another release of the controller, which
   * has the same field manager and pauses it for at most `commitMs`. Its commit must not be cut short, because that
   * would be a rollout.
   */
  readonly orphanPauseMs: number;
  /** Until a ReplicaFailure is a failure. It also occurs briefly in healthy rollouts. */
  readonly replicaFailureMs: number;
  /** For the owner of a deleted PipeScaling to create it again, as `kubectl replace --force` does. */
  readonly recreateMs: number;
  /** For the pipes of a new service to get their labels one after another, so that its size holds what each one has. */
  readonly adoptMs: number;
  /** Before the size is reapplied after another writer changed it; after the last one, the controller stops. */
  readonly fieldConflictMs: readonly number[];
  /** After these delays, a status that another writer removes is still repeated once in this time. */
  readonly repeatStatusMs: number;
  /** Before a write that got an error, because the next one may succeed. 20 writes in the first hour, then 12 per hour. */
  readonly writeRetry: Doubling;
  /** Before a retry of a failed rollout or rejected size: each attempt interrupts the pipe, or is unlikely to succeed. */
  readonly rolloutRetry: Doubling;
}

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;

/** The times in production. */
export const TIMEOUTS: Timeouts = {
  deferredMs: MINUTE_MS,
  roomRetry: { firstMs: MINUTE_MS, mostMs: 10 * MINUTE_MS },
  roomFoundMs: MINUTE_MS,
  nodesMs: MINUTE_MS,
  resizeMs: 2 * MINUTE_MS,
  commitMs: 30 * SECOND_MS,
  stuckCommitMs: 2 * MINUTE_MS,
  smallerMemoryMs: 30 * SECOND_MS,
  outOfMemoryMs: 10 * MINUTE_MS,
  crashLoopMs: 5 * MINUTE_MS,
  rescheduleMs: 15 * SECOND_MS,
  orphanPauseMs: MINUTE_MS,
  replicaFailureMs: 30 * SECOND_MS,
  recreateMs: 30 * SECOND_MS,
  adoptMs: 5 * SECOND_MS,
  fieldConflictMs: [0, 10 * SECOND_MS, MINUTE_MS],
  repeatStatusMs: 60 * MINUTE_MS,
  writeRetry: { firstMs: SECOND_MS, mostMs: 5 * MINUTE_MS },
  rolloutRetry: { firstMs: 5 * MINUTE_MS, mostMs: 60 * MINUTE_MS },
};
