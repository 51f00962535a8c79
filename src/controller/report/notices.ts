import type { KubeObject } from "../../kube/objects.ts";
import type { Store } from "../../runtime/store.ts";

/**
 * What this process last said about objects that it does not manage. It says the same thing once: another controller may
 * manage them, and the two must not write over each other's status for ever.
 */
export class Notices {
  readonly #texts = new Map<string, string>();

  /** @param stores of the objects; a notice is forgotten with its object */
  constructor(stores: readonly Pick<Store<KubeObject>, "onChange">[]) {
    for (const store of stores) {
      store.onChange((change) => {
        if (change.type === "deleted") this.forget(change.previous);
      });
    }
  }

  isNew({ metadata }: KubeObject, text: string): boolean {
    return this.#texts.get(metadata.uid) !== text;
  }

  add({ metadata }: KubeObject, text: string): void {
    this.#texts.set(metadata.uid, text);
  }

  /** The object is managed now. */
  forget({ metadata }: KubeObject): void {
    this.#texts.delete(metadata.uid);
  }
}
