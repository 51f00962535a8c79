import { randomUUID } from "node:crypto";
import type { KubeRequest } from "../../src/kube/client.ts";
import { KubeApiError, KubeUnreachableError } from "../../src/kube/errors.ts";
import type { KubeObject } from "../../src/kube/objects.ts";

/** What the cluster answers to a call that is neither a list nor a watch. */
export type Behaviour = (request: KubeRequest) => unknown;

/**
 * A cluster of a few lists, for what the real one cannot be made to show cheaply. Its watches see no change;
 * whether it can be reached, and what it says to other calls, is up to the test.
 */
export class StubCluster {
  readonly #lists = new Map<string, KubeObject[]>();
  readonly calls: KubeRequest[] = [];
  reachable = true;
  /** A kind that we have no rights to. */
  unreadable: string | undefined;
  behaviour: Behaviour = () => {
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

  async json<T>(request: KubeRequest): Promise<T>;
  async json(request: KubeRequest): Promise<unknown> {
    this.#requireReachable(request);
    const plural = request.path.split("/").at(-1) ?? "";
    if (plural === this.unreadable) throw refusal(403);
    if (request.method === undefined && /^(configmaps|secrets|pipescalings)$/.test(plural)) {
      return { metadata: { resourceVersion: "1" }, items: this.#lists.get(plural) ?? [] };
    }
    this.calls.push(request);
    return this.behaviour(request);
  }

  async stream({
    signal,
    ...request
  }: KubeRequest & { readonly signal: AbortSignal }): Promise<AsyncIterable<Buffer>> {
    this.#requireReachable(request);
    // It has no lists as events, as Kubernetes 1.31.
    if (request.query?.["sendInitialEvents"]) throw refusal(422);
    return quietWatch(signal);
  }

  #requireReachable({ method = "GET", path }: KubeRequest): void {
    if (!this.reachable) throw new KubeUnreachableError(`${method} ${path}: no answer`);
  }
}

/** One bookmark, and then nothing. */
async function* quietWatch(signal: AbortSignal): AsyncGenerator<Buffer> {
  yield Buffer.from(
    `${JSON.stringify({ type: "BOOKMARK", object: { metadata: { resourceVersion: "1" } } })}\n`,
  );
  await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
}

/** A refusal as the API server words it. */
export function refusal(code: number, status: { reason?: string; details?: object } = {}): KubeApiError {
  return new KubeApiError("PATCH", code, JSON.stringify({ kind: "Status", code, ...status }));
}
