import { isDeepStrictEqual } from "node:util";
import type { KubeObject } from "../kube/objects.ts";
import { compareResourceVersions } from "./resource-version.ts";

export type Change<T> = (
  | { readonly type: "added"; readonly object: T }
  | { readonly type: "updated"; readonly object: T; readonly previous: T }
  /** `isMissed`: no watch event showed the deletion, so `previous` may not be the last version. */
  | { readonly type: "deleted"; readonly previous: T; readonly isMissed: boolean }
) & {
  /** True if the change comes from the response to one of our calls, and not from a watch. False for a deletion. */
  readonly isOurs: boolean;
};

export type Indexes<T> = Readonly<Record<string, (object: T) => readonly string[]>>;

/** A list that was requested and is not complete. */
export interface ListInFlight {
  /** `undefined` if the list covers all namespaces. */
  readonly namespace: string | undefined;
  /** Responses that the store observed since the request: key to resource version. */
  readonly written: Map<string, string>;
}

/**
 * The objects of one kind as last seen, by `namespace/name` and by indexes.
 *
 * Guarantees:
 * - Within an epoch (from one list to the next) an object never goes back to an older version, so a late watch event
 *   cannot undo the response to one of our writes.
 * - An object that was deleted and recreated is reported as `deleted` and then `added`, even if no event showed that.
 * - Listeners run after the store has changed, in the order of the changes. They must not throw.
 */
export class Store<T extends KubeObject> {
  readonly #objects = new Map<string, T>();
  readonly #indexers: Indexes<T>;
  /** Keys by index and value. Most values have one key, for which a set would take several times the memory. */
  readonly #indexed = new Map<string, Map<string, string | Set<string>>>();
  readonly #listeners: ((change: Change<T>) => void)[] = [];
  readonly #lists = new Set<ListInFlight>();
  /**
   * Newest version seen, by namespace (`undefined`: all). If a response has an object that is neither newer nor stored,
   * the object was deleted.
   */
  readonly #newest = new Map<string | undefined, string>();
  /** Versions from responses to our calls that no watch has reached yet, and the namespace of each. */
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

  /** Objects for which the index function returns this value. */
  by(index: string, value: string): T[] {
    const keys = this.#indexed.get(index)?.get(value) ?? [];
    return (typeof keys === "string" ? [keys] : [...keys]).flatMap((key) => this.#objects.get(key) ?? []);
  }

  onChange(listener: (change: Change<T>) => void): void {
    this.#listeners.push(listener);
  }

  /** Returns true if the store has this version from the response to one of our calls, so its event can be skipped. */
  isOurs(resourceVersion: string): boolean {
    return this.#ours.has(resourceVersion);
  }

  /** Call it instead of `apply` when a watch reaches a version for which `isOurs` returns true. */
  skipOurs(resourceVersion: string): void {
    this.#noteVersion(this.#ours.get(resourceVersion), resourceVersion);
  }

  /** Stores a version of an object from a watch, unless the store has the same or a newer one. */
  apply(object: T): void {
    const { namespace, resourceVersion } = object.metadata;
    this.#noteVersion(namespace, resourceVersion);
    this.#accept(object, false);
  }

  /** @returns false if the known version is the same or newer */
  #accept(object: T, isOurs: boolean): boolean {
    const key = keyOf(object);
    const previous = this.#objects.get(key);
    if (previous && !isNewer(object, previous)) return false;
    if (previous && previous.metadata.uid !== object.metadata.uid) this.#delete(key, previous, true);
    this.#put(key, object, isOurs);
    return true;
  }

  /**
   * Stores an object from the response to one of our calls. A list that was requested earlier does not undo it. The
   * response is ignored if the object is already known to be deleted.
   */
  observe(object: T): void {
    const { namespace, resourceVersion } = object.metadata;
    const isOld = [namespace, undefined].some(
      (scope) => compareResourceVersions(resourceVersion, this.#newest.get(scope) ?? "") <= 0,
    );
    if (isOld && !this.#objects.has(keyOf(object))) return;
    if (!this.#accept(object, true)) return;
    this.#ours.set(resourceVersion, namespace);
    for (const { written } of this.#lists) written.set(keyOf(object), resourceVersion);
  }

  /** Deletes an object after an event of a watch, unless the store has a newer version than the event. */
  remove(object: KubeObject): void {
    const { namespace, resourceVersion } = object.metadata;
    this.#noteVersion(namespace, resourceVersion);
    const key = keyOf(object);
    const previous = this.#objects.get(key);
    if (previous && !isNewer(previous, object)) this.#delete(key, previous, false);
  }

  /**
   * Deletes an object that the watch no longer selects, as the response to one of our calls shows. A watch event of an
   * older version that is still on its way brings the object back until the event of this change.
   */
  leave(object: T): void {
    const key = keyOf(object);
    const previous = this.#objects.get(key);
    if (previous && !isNewer(previous, object)) this.#delete(key, previous, false);
  }

  /**
   * Call it before a list is requested, so that `replace` knows which responses are newer, and end the list with
   * `replace` or `abandon`.
   *
   * @param namespace `undefined` if the list covers all namespaces
   */
  beginList(namespace: string | undefined): ListInFlight {
    const list = { namespace, written: new Map() };
    this.#lists.add(list);
    return list;
  }

  abandon(list: ListInFlight): void {
    this.#lists.delete(list);
  }

  /**
   * Returns true if the list, or an object in it, is older than the store, or if a listed object has the version of the
   * stored one but another uid. All of this happens only after an etcd restore.
   */
  isRolledBackBy(list: ListInFlight, listed: ReadonlyMap<string, T>, listVersion: string): boolean {
    const newest =
      list.namespace === undefined ? [...this.#newest.values()] : [this.#newest.get(list.namespace)];
    const isBeforeList = (version = "") => compareResourceVersions(version, listVersion) <= 0;
    if (!newest.every(isBeforeList)) return true;
    // There is nothing to compare the first list with, which can be long.
    if (this.#objects.size === 0) return false;
    return [...this.#objects].some(([key, known]) => {
      const isCovered = list.namespace === undefined || known.metadata.namespace === list.namespace;
      if (!isCovered || list.written.has(key)) return false;
      const object = listed.get(key);
      if (!object) return !isBeforeList(known.metadata.resourceVersion);
      const isOther = known.metadata.uid !== object.metadata.uid;
      return isNewer(known, object) || (isOther && !isNewer(object, known));
    });
  }

  /** Makes the store equal to a complete list, even if the list is older (etcd rollback). Newer responses stay. */
  replace(list: ListInFlight, listed: ReadonlyMap<string, T>, listVersion: string): void {
    this.#lists.delete(list);
    // After an etcd rollback, writes of others can have these versions.
    this.#ours.clear();
    if (list.namespace === undefined) this.#newest.clear();
    this.#newest.set(list.namespace, listVersion);
    const isNewerThanList = (key: string) => {
      const version = list.written.get(key);
      return version !== undefined && compareResourceVersions(version, listVersion) > 0;
    };
    for (const [key, previous] of [...this.#objects]) {
      const isCovered = list.namespace === undefined || previous.metadata.namespace === list.namespace;
      if (isCovered && !listed.has(key) && !isNewerThanList(key)) this.#delete(key, previous, true);
    }
    for (const [key, object] of listed) {
      const previous = this.#objects.get(key);
      // Whole objects are compared, because after an etcd rollback another write can have the same version.
      if (isDeepStrictEqual(previous, object) || isNewerThanList(key)) continue;
      if (previous && previous.metadata.uid !== object.metadata.uid) this.#delete(key, previous, true);
      this.#put(key, object, false);
    }
  }

  #noteVersion(namespace: string | undefined, resourceVersion: string): void {
    this.#ours.delete(resourceVersion);
    const known = this.#newest.get(namespace) ?? "";
    if (compareResourceVersions(resourceVersion, known) > 0) this.#newest.set(namespace, resourceVersion);
  }

  #put(key: string, object: T, isOurs: boolean): void {
    const previous = this.#objects.get(key);
    if (previous) this.#unindex(key, previous);
    this.#objects.set(key, object);
    for (const [name, values] of this.#indexed) {
      for (const value of this.#indexers[name]?.(object) ?? []) {
        const keys = values.get(value);
        if (keys === undefined) values.set(value, key);
        else if (typeof keys === "string") values.set(value, new Set([keys, key]));
        else keys.add(key);
      }
    }
    this.#notify(
      previous ? { type: "updated", object, previous, isOurs } : { type: "added", object, isOurs },
    );
  }

  #delete(key: string, previous: T, isMissed: boolean): void {
    this.#unindex(key, previous);
    this.#objects.delete(key);
    this.#notify({ type: "deleted", previous, isMissed, isOurs: false });
  }

  #unindex(key: string, object: T): void {
    for (const [name, values] of this.#indexed) {
      for (const value of this.#indexers[name]?.(object) ?? []) {
        const keys = values.get(value);
        if (keys === key) values.delete(value);
        else if (typeof keys === "object" && keys.delete(key) && keys.size === 0) values.delete(value);
      }
    }
  }

  #notify(change: Change<T>): void {
    for (const listener of this.#listeners) listener(change);
  }
}

function isNewer(a: KubeObject, b: KubeObject): boolean {
  return compareResourceVersions(a.metadata.resourceVersion, b.metadata.resourceVersion) > 0;
}

/** The objects of a list, by key. */
export function byKey<T extends KubeObject>(objects: readonly T[]): ReadonlyMap<string, T> {
  return new Map(objects.map((object) => [keyOf(object), object]));
}

export function keyOf(object: KubeObject): string {
  const { namespace, name } = object.metadata;
  // Unlike a template, `join` does not keep the parts beside the result, which are a third of the memory of a long key.
  return namespace ? [namespace, name].join("/") : name;
}
