import { isCode } from "../kube/errors.ts";
import type { KubeObject } from "../kube/objects.ts";
import type { Informer } from "./informer.ts";
import { Reflector, type ReflectorOptions } from "./reflector.ts";

export interface MultiNamespaceInformerOptions<T extends KubeObject, Raw extends KubeObject = KubeObject>
  extends Omit<ReflectorOptions<T, Raw>, "namespace" | "includes"> {
  readonly namespaces: readonly string[];
  /** Creates the informer of one namespace. */
  readonly create: (options: ReflectorOptions<T, Raw>) => Informer;
}

/**
 * Keeps a store equal to the API server's objects of one kind in several namespaces.
 *
 * One watch of all namespaces needs one connection instead of one per namespace, so it is tried first. If the account
 * may not list and watch the kind in all namespaces, or loses this permission later, there is one watch per namespace
 * from then on. The attempt needs no access review and no other permission. If a starting API server wrongly responds
 * 403, the only cost is more connections.
 */
export class MultiNamespaceInformer<T extends KubeObject, Raw extends KubeObject = KubeObject>
  implements Informer
{
  readonly resource: string;
  readonly synced: Promise<void>;
  readonly #clusterWide: Reflector<T, Raw>;
  readonly #namespaced: readonly Informer[];
  readonly #forbidden = new AbortController();

  constructor({ namespaces, create, ...options }: MultiNamespaceInformerOptions<T, Raw>) {
    const included = new Set(namespaces);
    this.#clusterWide = new Reflector({
      ...options,
      includes: (namespace) => included.has(namespace),
      onProblem: (problem) => {
        const isForbidden = isCode(problem, 403);
        if (isForbidden) this.#forbidden.abort();
        if (!isForbidden || this.#clusterWide.isSynced) options.onProblem(problem);
      },
    });
    this.#namespaced = namespaces.map((namespace) => create({ ...options, namespace }));
    this.resource = this.#clusterWide.resource;
    const allNamespaces = Promise.all(this.#namespaced.map(({ synced }) => synced));
    this.synced = Promise.race([this.#clusterWide.synced, allNamespaces.then(() => undefined)]);
  }

  get isSynced(): boolean {
    return this.#clusterWide.isSynced || this.#namespaced.every(({ isSynced }) => isSynced);
  }

  /** That of the namespace whose objects were confirmed least recently. */
  get lastContact(): number {
    const { lastContact } = this.#clusterWide;
    if (!this.#forbidden.signal.aborted) return lastContact;
    return Math.min(...this.#namespaced.map((each) => Math.max(each.lastContact, lastContact)));
  }

  async run(signal: AbortSignal): Promise<void> {
    await this.#clusterWide.run(AbortSignal.any([signal, this.#forbidden.signal]));
    if (signal.aborted) return;
    await Promise.all(this.#namespaced.map((each) => each.run(signal)));
  }
}
