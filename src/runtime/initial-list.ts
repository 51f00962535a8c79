import type { KubeObject } from "../kube/objects.ts";
import { keyOf, type ListInFlight, type Store } from "./store.ts";

/** Asks a watch to begin with all that there is, as a list without a resource version would have it. */
export const LIST_AS_EVENTS = { sendInitialEvents: true, resourceVersionMatch: "NotOlderThan" };

/** Annotation of the bookmark of a watch that has told all that there was when it began: `true`. */
export const ENDED_LIST = "k8s.io/initial-events-end";

/** A list that comes as the first events of a watch: nothing of it is in the store before all of it is here. */
export class InitialList<T extends KubeObject> {
  readonly #store: Store<T>;
  readonly list: ListInFlight;
  readonly #objects = new Map<string, T>();

  /** Every beginning has its end: `list` is given to the store, or `abandon`. */
  constructor(store: Store<T>, namespace: string | undefined) {
    this.#store = store;
    this.list = store.beginList(namespace);
  }

  take(type: "ADDED" | "MODIFIED" | "DELETED", object: T): void {
    if (type === "DELETED") this.#objects.delete(keyOf(object));
    else this.#objects.set(keyOf(object), object);
  }

  get objects(): readonly T[] {
    return [...this.#objects.values()];
  }

  abandon(): void {
    this.#store.abandon(this.list);
  }
}
