import type { KubeObject } from "../kube/objects.ts";
import { compareResourceVersions } from "./resource-version.ts";

export type Change<T> = (
  | { readonly type: "added"; readonly object: T }
  | { readonly type: "updated"; readonly object: T; readonly previous: T }
  | { readonly type: "deleted"; readonly previous: T }
) & {
  /** It is told by the answer to a write of ours. */
  readonly isOurs: boolean;
};

export type Indexes<T> = Readonly<Record<string, (object: T) => readonly string[]>>;

/** A list that has been asked for, and what was written meanwhile: key to resource version. */
export interface ListInFlight {
  readonly namespace: string | undefined;
  readonly written: Map<string, string>;
}

/**
 * The objects of one kind as last seen, by `namespace/name` and by indexes.
 *
 * Guarantees:
 * - Within an epoch (from one list to the next) an object never goes back to an older version, so a late
 *   watch event cannot undo what the answer to our own write has shown.
 * - An object that was deleted and made again is told as `deleted` and then `added`, also when both
 *   happened unseen.
 * - Listeners run after the store has changed, in the order of the changes. They must not throw.
 */
export class Store<T extends KubeObject> {
  readonly #objects = new Map<string, T>();
  readonly #indexers: Indexes<T>;
  readonly #indexed = new Map<string, Map<string, Set<string>>>();
  readonly #listeners: ((change: Change<T>) => void)[] = [];
  readonly #lists = new Set<ListInFlight>();
  /** The newest version told of each namespace, `undefined` being all: what is not known by then is gone. */
  readonly #told = new Map<string | undefined, string>();
  /** Versions that our own writes made, of which no watch has told yet, and the namespace of each. */
  readonly #ours = new Map<string, string | undefined>();

  constructor(indexers: Indexes<T> = {}) {
    this.#indexers = indexers;
    for (const name of Object.keys(indexers)) this.#indexed.set(name, new Map());
  }

  get size(): number {
    return this.#objects.size;
  }

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  values(): IterableIterator<T> {
    return this.#objects.values();
  }

  /** Objects whose index function gave this value. */
  by(index: string, value: string): T[] {
    const keys = this.#indexed.get(index)?.get(value) ?? [];
    return [...keys].flatMap((key) => this.#objects.get(key) ?? []);
  }

  onChange(listener: (change: Change<T>) => void): void {
    this.#listeners.push(listener);
  }

  /** Whether a write of ours made this version and its answer is here: then its event need not be read. */
  isOurs(resourceVersion: string): boolean {
    return this.#ours.has(resourceVersion);
  }

  /** The watch has come to a version that `isOurs`. */
  passOurs(resourceVersion: string): void {
    this.#noteTold(this.#ours.get(resourceVersion), resourceVersion);
  }

  /** A version of an object, from a watch. Older ones than the one known are ignored. */
  apply(object: T): void {
    const { namespace, resourceVersion } = object.metadata;
    this.#noteTold(namespace, resourceVersion);
    this.#accept(object, false);
  }

  /** @returns whether it was news */
  #accept(object: T, isOurs: boolean): boolean {
    const key = keyOf(object);
    const previous = this.#objects.get(key);
    if (previous && !isNewer(object, previous)) return false;
    if (previous && previous.metadata.uid !== object.metadata.uid) this.#delete(key, previous);
    this.#put(key, object, isOurs);
    return true;
  }

  /**
   * The answer to a write of ours: known at once, and not undone by a list that began before it. One that comes
   * after the news of the object's end is ignored.
   */
  observe(object: T): void {
    const { namespace, resourceVersion } = object.metadata;
    const isTold = [namespace, undefined].some(
      (scope) => compareResourceVersions(resourceVersion, this.#told.get(scope) ?? "") <= 0,
    );
    if (isTold && !this.#objects.has(keyOf(object))) return;
    for (const { written } of this.#lists) written.set(keyOf(object), resourceVersion);
    if (this.#accept(object, true)) this.#ours.set(resourceVersion, namespace);
  }

  /** A deletion, from a watch; carries the version at which it happened. */
  remove(object: T): void {
    const { namespace, resourceVersion } = object.metadata;
    this.#noteTold(namespace, resourceVersion);
    const key = keyOf(object);
    const previous = this.#objects.get(key);
    if (previous && !isNewer(previous, object)) this.#delete(key, previous);
  }

  /**
   * To be called before a list is asked for, so that `replace` knows which writes are newer than it.
   * Every beginning has its end: `replace`, or `abandon`.
   *
   * @param namespace what the list covers; everything when absent
   */
  beginList(namespace: string | undefined): ListInFlight {
    const list = { namespace, written: new Map() };
    this.#lists.add(list);
    return list;
  }

  abandon(list: ListInFlight): void {
    this.#lists.delete(list);
  }

  /** Whether the list, or an object in it, is older than what is known: nothing of the kind happens in one history. */
  isTakenBackBy(list: ListInFlight, objects: readonly T[], listVersion: string): boolean {
    const told = list.namespace === undefined ? [...this.#told.values()] : [this.#told.get(list.namespace)];
    const isBeforeList = (version = "") => compareResourceVersions(version, listVersion) <= 0;
    if (!told.every(isBeforeList)) return true;
    // The first list has nothing to be held against, and may be long.
    if (this.#objects.size === 0) return false;
    const listed = new Map(objects.map((object) => [keyOf(object), object]));
    return [...this.#objects].some(([key, known]) => {
      const isCovered = list.namespace === undefined || known.metadata.namespace === list.namespace;
      if (!isCovered || list.written.has(key)) return false;
      const object = listed.get(key);
      return object ? isNewer(known, object) : !isBeforeList(known.metadata.resourceVersion);
    });
  }

  /** A complete list: the truth, also where it is older than what was known (etcd put back). */
  replace(list: ListInFlight, objects: readonly T[], listVersion: string): void {
    this.#lists.delete(list);
    // In another history these versions may be another's.
    this.#ours.clear();
    if (list.namespace === undefined) this.#told.clear();
    this.#told.set(list.namespace, listVersion);
    const listed = new Map(objects.map((object) => [keyOf(object), object]));
    const isNewerThanList = (key: string) => {
      const version = list.written.get(key);
      return version !== undefined && compareResourceVersions(version, listVersion) > 0;
    };
    for (const [key, previous] of [...this.#objects]) {
      const isCovered = list.namespace === undefined || previous.metadata.namespace === list.namespace;
      if (isCovered && !listed.has(key) && !isNewerThanList(key)) this.#delete(key, previous);
    }
    for (const [key, object] of listed) {
      const previous = this.#objects.get(key);
      const isKnown = previous?.metadata.resourceVersion === object.metadata.resourceVersion;
      if (isKnown || isNewerThanList(key)) continue;
      if (previous && previous.metadata.uid !== object.metadata.uid) this.#delete(key, previous);
      this.#put(key, object, false);
    }
  }

  #noteTold(namespace: string | undefined, resourceVersion: string): void {
    this.#ours.delete(resourceVersion);
    const known = this.#told.get(namespace) ?? "";
    if (compareResourceVersions(resourceVersion, known) > 0) this.#told.set(namespace, resourceVersion);
  }

  #put(key: string, object: T, isOurs: boolean): void {
    const previous = this.#objects.get(key);
    if (previous) this.#unindex(key, previous);
    this.#objects.set(key, object);
    for (const [name, values] of this.#indexed) {
      for (const value of this.#indexers[name]?.(object) ?? []) {
        const keys = values.get(value) ?? new Set();
        values.set(value, keys.add(key));
      }
    }
    this.#tell(previous ? { type: "updated", object, previous, isOurs } : { type: "added", object, isOurs });
  }

  #delete(key: string, previous: T): void {
    this.#unindex(key, previous);
    this.#objects.delete(key);
    this.#tell({ type: "deleted", previous, isOurs: false });
  }

  #unindex(key: string, object: T): void {
    for (const [name, values] of this.#indexed) {
      for (const value of this.#indexers[name]?.(object) ?? []) {
        const keys = values.get(value);
        keys?.delete(key);
        if (keys?.size === 0) values.delete(value);
      }
    }
  }

  #tell(change: Change<T>): void {
    for (const listener of this.#listeners) listener(change);
  }
}

function isNewer(a: KubeObject, b: KubeObject): boolean {
  return compareResourceVersions(a.metadata.resourceVersion, b.metadata.resourceVersion) > 0;
}

export function keyOf(object: KubeObject): string {
  const { namespace, name } = object.metadata;
  return namespace === undefined ? name : `${namespace}/${name}`;
}
