import type { Store } from "../../runtime/store.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import type { Validation } from "../observe/validation.ts";

/** The last dry run of each Deployment. It has at most as many entries as the cache has Deployments. */
export class Validations {
  readonly #records = new Map<string, Validation>();

  constructor(pipes: Store<DeploymentView>) {
    pipes.onChange((change) => {
      if (change.type === "deleted") this.#records.delete(change.previous.metadata.uid);
    });
  }

  /** Keyed by uid of the Deployment. */
  get records(): ReadonlyMap<string, Validation> {
    return this.#records;
  }

  begin(uid: string, key: string): void {
    this.#records.set(uid, { key, isPending: true });
  }

  accepted(uid: string, key: string): void {
    this.#records.set(uid, { key, isPending: false });
  }

  forget(uid: string): void {
    this.#records.delete(uid);
  }
}
