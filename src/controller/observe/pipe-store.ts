import { type Change, type Indexes, Store } from "../../runtime/store.ts";
import { keyOfPipe, PIPE_KINDS, type PipeKind } from "./pipe-kind.ts";
import type { PipeView } from "./pipe-view.ts";

const BY_KEY = "key";

/** The pipes of all kinds. The versions of different kinds cannot be compared, so each kind has a store of its own. */
export class PipeStore {
  readonly #stores: Readonly<Record<PipeKind, Store<PipeView>>>;

  constructor(indexes: Indexes<PipeView>) {
    this.#stores = {
      Deployment: new Store(indexes),
      StatefulSet: new Store({ ...indexes, [BY_KEY]: (pipe) => [keyOfPipe(pipe)] }),
    };
  }

  /** The store that an informer fills. */
  of(kind: PipeKind): Store<PipeView> {
    return this.#stores[kind];
  }

  get size(): number {
    return this.#all.reduce((sum, { size }) => sum + size, 0);
  }

  /** @param key as {@link keyOfPipe} returns it */
  get(key: string): PipeView | undefined {
    // The keys of Deployments are those of their store.
    return this.#stores.Deployment.get(key) ?? this.#stores.StatefulSet.by(BY_KEY, key)[0];
  }

  *values(): Generator<PipeView> {
    for (const store of this.#all) yield* store.values();
  }

  by(index: string, value: string): PipeView[] {
    return this.#all.flatMap((store) => store.by(index, value));
  }

  onChange(listener: (change: Change<PipeView>) => void): void {
    for (const store of this.#all) store.onChange(listener);
  }

  apply(pipe: PipeView): void {
    this.of(pipe.kind).apply(pipe);
  }

  observe(pipe: PipeView): void {
    this.of(pipe.kind).observe(pipe);
  }

  remove(pipe: PipeView): void {
    this.of(pipe.kind).remove(pipe);
  }

  get #all(): readonly Store<PipeView>[] {
    return PIPE_KINDS.map((kind) => this.#stores[kind]);
  }
}
