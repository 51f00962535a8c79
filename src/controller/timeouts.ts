/** A delay that doubles with each attempt. */
export interface Doubling {
  readonly firstMs: number;
  readonly mostMs: number;
}

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;

/** The times for which the controller waits before it gives up or tries again, in milliseconds. Tests shorten them. */
export const TIMEOUTS = {
  /**
   * Until a deferred resize of a pod fails, because it reserves room on the node that a rollout may need. If the
   * rollout would stop old pods first: until the controller searches other nodes for room.
   */
  deferredMs: MINUTE_MS,
  /** Before the nodes are searched for room again, for a pipe that stops its old pods first. */
  roomRetry: { firstMs: MINUTE_MS, mostMs: 10 * MINUTE_MS },
  /** Time for which a search that found room counts, and an accepted dry run that also tried a pod. */
  roomFoundMs: MINUTE_MS,
  /** Before the namespaces that the controller could not read when it started are tried again. */
  unreadableMs: MINUTE_MS,
  /** Time for which all services share one list of nodes. */
  nodesMs: MINUTE_MS,
  /** Until a resize of a pod that is neither deferred nor infeasible fails. The kubelet retries every 10 to 15 s. */
  resizeMs: 2 * MINUTE_MS,
  /**
   * Until a commit ends without a response of the controller of the workload. The Deployment controller responds within
   * 200 ms unless it restarts.
   */
  commitMs: 30 * SECOND_MS,
  /** Until other pipes no longer wait for a commit that cannot end, such as one whose writes fail. */
  stuckCommitMs: 2 * MINUTE_MS,
  /**
   * Time for which a pipe must be available before others follow, if a resize in place lowered its memory or restarted
   * a container.
   */
  smallerMemoryMs: 30 * SECOND_MS,
  /** Time after a commit to less memory for which a container that runs out of memory shows that it is too little. */
  outOfMemoryMs: 10 * MINUTE_MS,
  /** From the last restart of a container until its pipe proves the size: the longest restart delay of a kubelet. */
  crashLoopMs: 5 * MINUTE_MS,
  /**
   * For the scheduler to try an unschedulable pod again after another pod has ended. Its longest delay is 10 s. A
   * ReplicaSet that could not create a pod has this time, too, in addition to its delay.
   */
  rescheduleMs: 15 * SECOND_MS,
  /**
   * In a rollout of a StatefulSet: until a pod of an earlier template that crashes, or fits no node, is deleted. The
   * controller waits for any other one as long as for a rollout, because it may only start slowly.
   */
  stuckPodMs: MINUTE_MS,
  /** For the status of a workload to show that one of its pods has ended. The pods have a watch of their own. */
  podEndMs: 5 * SECOND_MS,
  /**
   * Until an orphan that is paused for a commit is resumed. One that this process paused is resumed at once. Any other
   * may be a pipe of another installation, whose controller has the same field manager and pauses it for at most
   * `commitMs`. That commit must not be cut short, because that would start a rollout.
   */
  orphanPauseMs: MINUTE_MS,
  /**
   * After the start of a rollout of a StatefulSet: until a write to its spec no longer begins its timeout again. Such a
   * write may end a long interruption by the owner, but it may also be one of an endless number.
   */
  renewalMs: 24 * 60 * MINUTE_MS,
  /** For a pipe with pods: until the condition ReplicaFailure counts as a failure. Healthy rollouts have it briefly. */
  replicaFailureMs: 30 * SECOND_MS,
  /** For the owner of a deleted PipeScaling to create it again, as `kubectl replace --force` does. */
  recreateMs: 30 * SECOND_MS,
  /** For the pipes of a new service to get their labels one by one, so that its first size is large enough for all. */
  adoptMs: 5 * SECOND_MS,
  /** Before the size is reapplied after another writer changed it. After the last of these, the controller gives up. */
  fieldConflictMs: [0, 10 * SECOND_MS, MINUTE_MS] as readonly number[],
  /** After the delays of `fieldConflictMs`, a status that another writer removes is written again once in this time. */
  repeatStatusMs: 60 * MINUTE_MS,
  /** Before a status is written again if only numbers in its messages have changed. */
  refreshStatusMs: 10 * MINUTE_MS,
  /** Before a failed write is repeated: 20 writes in the first hour, then 12 per hour. */
  writeRetry: { firstMs: SECOND_MS, mostMs: 5 * MINUTE_MS },
  /** Before a commit that was undone is repeated. Each is two writes: 18 in the first hour, then 12 per hour. */
  commitRetry: { firstMs: MINUTE_MS, mostMs: 10 * MINUTE_MS },
  /**
   * Before a retry of a rejected size, or of a failed rollout that did not stop old pods first. Each one may restart
   * pods, or is unlikely to succeed.
   */
  rolloutRetry: { firstMs: 5 * MINUTE_MS, mostMs: 60 * MINUTE_MS },
};

export type Timeouts = Readonly<typeof TIMEOUTS>;
