/** The process is healthy, but its caches or its lease are no longer valid: it must end and start again. */
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
