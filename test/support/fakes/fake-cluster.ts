import { randomUUID } from "node:crypto";
import { EventEmitter, on } from "node:events";
import type { KubeRequest } from "../../../src/kube/client.ts";
import { KubeApiError, KubeUnreachableError } from "../../../src/kube/errors.ts";
import type { KubeObject } from "../../../src/kube/objects.ts";

/** Responds to a call that is neither a list nor a watch. */
export type Behavior = (request: KubeRequest) => unknown;

interface Hold {
  readonly count: number;
  readonly released: Promise<void>;
}

/**
 * A fake cluster of a few lists, for situations that are expensive to create in a real one. Its watches deliver only
 * the events that a test sends. The test decides whether the cluster is reachable, how it sends lists, and how it
 * responds to other calls.
 */
export class FakeCluster {
  readonly #lists = new Map<string, KubeObject[]>();
  readonly #events = new EventEmitter();
  readonly #holds = new Map<string, Hold>();
  readonly calls: KubeRequest[] = [];
  reachable = true;
  /** Allows watches that begin with a list; if false, they are rejected with 422, as in Kubernetes 1.31. */
  canStreamLists = false;
  /** A kind, or a namespace and a kind such as `acme/pipescalings`, that the client has no permission to read. */
  unreadable: string | undefined;
  /** How the cluster refuses to have them read. */
  refusalCode = 403;
  refusalMessage = "forbidden";
  isSoonAfterOutage = false;
  behavior: Behavior = () => {
    throw new Error("no call was expected");
  };

  add(
    plural: string,
    namespace: string,
    object: { readonly metadata: { readonly name: string } },
  ): KubeObject {
    const metadata = { namespace, uid: randomUUID(), resourceVersion: "1", ...object.metadata };
    const added = { ...object, metadata };
    this.#lists.set(plural, [...(this.#lists.get(plural) ?? []), added]);
    return added;
  }

  /** Changes an object without an event, as if all watches had been down. */
  replace(plural: string, object: KubeObject): void {
    const others = (this.#lists.get(plural) ?? []).filter(
      ({ metadata }) => metadata.name !== object.metadata.name,
    );
    this.#lists.set(plural, [...others, object]);
  }

  /** Sends an event to all open watches of this kind. */
  send(plural: string, type: "MODIFIED" | "DELETED", object: KubeObject): void {
    const metadata = {
      ...object.metadata,
      resourceVersion: String(Number(object.metadata.resourceVersion) + 1),
    };
    this.#events.emit(plural, { type, object: { ...object, metadata } });
  }

  /** Streamed lists of this kind stop after `count` initial events until `release` is called. */
  holdList(plural: string, count: number): { readonly release: () => void } {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    this.#holds.set(plural, { count, released });
    return { release };
  }

  async json<T>(request: KubeRequest): Promise<T>;
  async json(request: KubeRequest): Promise<unknown> {
    this.#requireReachable(request);
    this.#requireReadable(request);
    const plural = request.path.split("/").at(-1) ?? "";
    if (request.method === undefined && /^(configmaps|secrets|pipescalings)$/.test(plural)) {
      return { metadata: { resourceVersion: "1" }, items: this.#listed(request) };
    }
    this.calls.push(request);
    return this.behavior(request);
  }

  async stream({
    signal,
    ...request
  }: KubeRequest & { readonly signal: AbortSignal }): Promise<AsyncIterable<Buffer>> {
    this.#requireReachable(request);
    this.#requireReadable(request);
    const plural = request.path.split("/").at(-1) ?? "";
    if (!request.query?.["sendInitialEvents"]) return this.#watch(plural, [bookmark()], signal);
    if (!this.canStreamLists) throw refusal(422);
    return this.#watch(plural, this.#initialEvents(plural, request), signal);
  }

  async *#initialEvents(plural: string, request: KubeRequest): AsyncGenerator<object> {
    const hold = this.#holds.get(plural);
    for (const [at, object] of this.#listed(request).entries()) {
      if (at === hold?.count) await hold.released;
      yield { type: "ADDED", object };
    }
    await hold?.released;
    yield bookmark({ "k8s.io/initial-events-end": "true" });
  }

  /** Sends these events, and then those of the test until the signal is aborted. */
  async *#watch(
    plural: string,
    events: Iterable<object> | AsyncIterable<object>,
    signal: AbortSignal,
  ): AsyncGenerator<Buffer> {
    const later = on(this.#events, plural, { signal });
    for await (const event of events) yield lineOf(event);
    for await (const [event] of later) yield lineOf(event);
  }

  #listed({ path }: KubeRequest): readonly KubeObject[] {
    const [, namespace, plural = ""] = /(?:\/namespaces\/([^/]+))?\/([^/]+)$/.exec(path) ?? [];
    const objects = this.#lists.get(plural) ?? [];
    return objects.filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace);
  }

  #requireReadable({ path }: KubeRequest): void {
    if (this.unreadable !== undefined && path.endsWith(`/${this.unreadable}`))
      throw refusal(this.refusalCode, { message: this.refusalMessage }, this.isSoonAfterOutage);
  }

  #requireReachable({ method = "GET", path }: KubeRequest): void {
    if (!this.reachable) throw new KubeUnreachableError(`${method} ${path}: no response`);
  }
}

function bookmark(annotations = {}): object {
  return { type: "BOOKMARK", object: { metadata: { resourceVersion: "1", annotations } } };
}

function lineOf(event: object): Buffer {
  return Buffer.from(`${JSON.stringify(event)}\n`);
}

/** An error in the format of the API server. */
export function refusal(
  code: number,
  status: { message?: string; reason?: string; details?: object } = {},
  isSoonAfterOutage = false,
): KubeApiError {
  const body = JSON.stringify({ kind: "Status", code, ...status });
  return new KubeApiError("PATCH", code, body, { isSoonAfterOutage });
}
