/** The caches or the lease of the process are no longer valid, so it must restart. */
export class RestartRequiredError extends Error {
  override readonly name: string = "RestartRequiredError";
}

/** After an etcd restore, the caches of different kinds can disagree, so a new process must fill all of them. */
export class EtcdRollbackError extends RestartRequiredError {
  override readonly name = "EtcdRollbackError";

  constructor() {
    super("etcd was restored from an older snapshot: restart required");
  }
}
