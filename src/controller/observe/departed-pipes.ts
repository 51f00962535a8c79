import { keyOfPipe } from "./pipe-kind.ts";
import type { PipeStore } from "./pipe-store.ts";
import type { PipeView } from "./pipe-view.ts";

/** A Deployment is resumed within 30 s, and this is far more than commits that run at the same time. */
const MAX_ENTRIES = 1000;

/**
 * Deployments that left the cache while they were paused by the controller, because somebody removed a label or deleted
 * them. They are read until they are resumed or gone. After a crash, nothing shows them.
 */
export class DepartedPipes {
  readonly #pipes: Pick<PipeStore, "get">;
  /** Keyed by UID. */
  readonly #departed = new Map<string, PipeView>();

  constructor(pipes: Pick<PipeStore, "get" | "onChange">) {
    this.#pipes = pipes;
    pipes.onChange((change) => {
      if (change.type === "deleted") this.observe(change.previous);
      else this.forget(change.object.metadata.uid);
    });
  }

  /** Call it with the response to a write. The Deployment may have left the cache meanwhile. */
  observe(pipe: PipeView): void {
    const { uid } = pipe.metadata;
    if (this.#pipes.get(keyOfPipe(pipe))?.metadata.uid === uid) return;
    // The label of the service may be missing now.
    const serviceId = this.#departed.get(uid)?.serviceId ?? pipe.serviceId;
    if (!pipe.isPausedForCommit || pipe.isBeingDeleted) this.forget(uid);
    else if (this.#departed.has(uid) || this.#departed.size < MAX_ENTRIES)
      this.#departed.set(uid, { ...pipe, serviceId });
  }

  forget(uid: string): void {
    this.#departed.delete(uid);
  }

  all(): readonly PipeView[] {
    return [...this.#departed.values()];
  }

  /** Those that belonged to a service. */
  of(serviceId: string): readonly PipeView[] {
    return [...this.#departed.values()].filter((pipe) => pipe.serviceId === serviceId);
  }
}
