/** What this process knows or holds is no longer good, and nothing is wrong with it: end it, and start it anew. */
export class StartAnewError extends Error {
  override readonly name: string = "StartAnewError";
}

/** Views of several kinds would be of two histories for a while, and together of none. */
export class HistoryTakenBackError extends StartAnewError {
  override readonly name = "HistoryTakenBackError";

  constructor() {
    super("the cluster is older than what was known of it (was etcd put back?): ending, to start anew");
  }
}
