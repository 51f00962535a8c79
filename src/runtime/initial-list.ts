import type { KubeObject } from "../kube/objects.ts";
import { keyOf, type ListInFlight, type Store } from "./store.ts";

/** Query of a watch that begins with all existing objects, as current as in a list without a resource version. */
export const LIST_AS_EVENTS = { sendInitialEvents: true, resourceVersionMatch: "NotOlderThan" };

/** Annotation of the bookmark that ends the initial events of a watch. Its value is `true`. */
export const INITIAL_EVENTS_END = "k8s.io/initial-events-end";

/** A list that can replace the contents of the store. */
export interface CompleteList<T extends KubeObject> {
  readonly list: ListInFlight;
  /** The listed objects by their keys in the store. */
  readonly objects: ReadonlyMap<string, T>;
  /** Monotonic time of the request: the list shows the server's state at that time or later. */
  readonly requestedAt: number;
}

/** A list that arrives as the first events of a watch. The store shows none of it until it is complete. */
export class InitialList<T extends KubeObject> implements CompleteList<T> {
  readonly #store: Store<T>;
  readonly list: ListInFlight;
  readonly requestedAt: number;
  readonly objects = new Map<string, T>();

  /** Pass `list` to `Store.replace`, or call `abandon`: the store records writes for each list until then. */
  constructor(store: Store<T>, namespace: string | undefined, requestedAt: number) {
    this.#store = store;
    this.requestedAt = requestedAt;
    this.list = store.beginList(namespace);
  }

  apply(object: T): void {
    this.objects.set(keyOf(object), object);
  }

  remove(object: KubeObject): void {
    this.objects.delete(keyOf(object));
  }

  abandon(): void {
    this.#store.abandon(this.list);
  }
}
