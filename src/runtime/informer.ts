/** Keeps a store equal to the API server's objects of one kind. */
export interface Informer {
  /** Plural name of the kind. */
  readonly resource: string;
  /** Resolves when the store has been filled for the first time. */
  readonly synced: Promise<void>;
  readonly isSynced: boolean;
  /**
   * Monotonic time at which the store was last known to be current. A list proves this for the time of its request,
   * as soon as it is complete and in the store. A bookmark or an event proves it for the time of its arrival, unless it
   * belongs to the backlog of an interrupted watch.
   */
  readonly lastContact: number;
  /** Runs until the signal is aborted. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
}

/** Resolves when all stores have been filled, or the signal is aborted. */
export async function allSynced(informers: readonly Informer[], signal: AbortSignal): Promise<void> {
  const aborted = new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
  await Promise.race([Promise.all(informers.map((each) => each.synced)), aborted]);
}
