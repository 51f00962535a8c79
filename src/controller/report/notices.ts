import type { KubeObject } from "../../kube/objects.ts";
import type { Store } from "../../runtime/store.ts";

/**
 * The last notice of this process about each object that it does not manage. No notice is repeated, because another
 * controller may manage the object, and the two must not overwrite each other's status forever.
 */
export class Notices {
  readonly #texts = new Map<string, string>();

  /** @param stores of the objects; a notice is deleted with its object */
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

  /** Call it when the object is managed by this controller. */
  forget({ metadata }: KubeObject): void {
    this.#texts.delete(metadata.uid);
  }
}
