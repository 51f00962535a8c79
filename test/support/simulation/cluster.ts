import { LAST_ROLLOUT_ANNOTATION } from "../../../src/controller/names.ts";
import { toPipeView } from "../../../src/controller/observe/workloads/deployment.ts";
import type { PipeScalingStatus } from "../../../src/crd/pipe-scaling.ts";
import type { KubeRequest, Stream } from "../../../src/kube/client.ts";
import { KubeApiError, KubeUnreachableError } from "../../../src/kube/errors.ts";
import type { KubeObject, Node } from "../../../src/kube/objects.ts";
import type { Deployment } from "../../../src/kube/workloads.ts";
import { aNode } from "../fixtures/node.ts";
import { CONTROLLER, managedFieldsAfter } from "./managed-fields.ts";
import { checked, found, parsed, type ScalingObject, timeAt } from "./objects.ts";
import { OwnedCluster } from "./owned-cluster.ts";
import { patched } from "./patch.ts";
import { selectionOf, targetOf } from "./selectors.ts";
import { SimulatedWebhooks } from "./webhooks.ts";
import { merged } from "./workload-writes.ts";

/** The fault of a call: an error before or after its effect. */
export type Fault = { readonly error: Error; readonly isDone?: boolean } | undefined;

/** A write that the controller tried. */
export interface Attempt {
  /** On the monotonic clock. */
  readonly atMs: number;
  /** The resource and the name, for example `pods/resize pipe-0-1-2`. */
  readonly target: string;
  readonly isDryRun: boolean;
}

const LATENCY_MS = 5;

/**
 * Simulates an API server with the objects that the controller reads and writes, and the controllers behind them, in
 * virtual time.
 */
export class SimulatedCluster extends OwnedCluster {
  readonly webhooks = new SimulatedWebhooks(this.clock);
  /** The writes that the controller tried, refused ones included. */
  readonly attempts: Attempt[] = [];
  /** The size in bytes of each status patch of the controller. */
  readonly statusPatchBytes: number[] = [];
  /** A webhook removes the controller's annotation from what it writes. */
  isStripping = false;
  /** The nodes: by default one that is large enough for every test. */
  nodes: readonly Node[] = [aNode("node", { cpu: "256", memory: "1Ti" })];
  /** Delay of a call in ms. */
  latencyMs: (request: KubeRequest) => number = () => LATENCY_MS;
  fault: (request: KubeRequest, pipe: Deployment | undefined) => Fault = () => undefined;
  /** When the controller sent each write, on the monotonic clock. */
  readonly #sentMs = new WeakMap<KubeRequest, number>();

  /** A call of the controller. */
  async json<T>(request: KubeRequest): Promise<T> {
    const { name = "", resource } = targetOf(request);
    const isRead = (request.method ?? "GET") === "GET";
    if (!isRead) {
      this.#sentMs.set(request, this.clock.monotonic());
      const isDryRun = request.query?.["dryRun"] !== undefined;
      this.attempts.push({ atMs: this.clock.monotonic(), target: `${resource} ${name}`, isDryRun });
    }
    if (resource !== "pipescalings/status") return parsed(await this.#call(request));
    this.readyJudge.writes(name);
    let isFailed = true;
    try {
      const response = parsed<T>(await this.#call(request));
      isFailed = false;
      return response;
    } finally {
      this.readyJudge.wrote(name, { isFailed });
    }
  }

  async #call(request: KubeRequest): Promise<unknown> {
    const { name = "", resource } = targetOf(request);
    const isRead = (request.method ?? "GET") === "GET";
    await new Promise<void>((resolve) => this.clock.after(this.latencyMs(request), resolve));
    if (request.signal?.aborted) throw new KubeUnreachableError("the client has ended");
    await this.webhooks.check(request);
    // Reads of Deployments never fail, because they are part of writes.
    const isFaultless = isRead && resource === "deployments";
    const pipe = resource === "deployments" ? this.deployments.get(name) : undefined;
    const fault = isFaultless ? undefined : this.fault(request, pipe);
    if (fault && !fault.isDone) throw fault.error;
    const response = this.#respond(request);
    if (fault) throw fault.error;
    return response;
  }

  /** A watch of the controller. */
  stream(request: KubeRequest): Promise<Stream> {
    const { workloads } = this;
    if (!workloads) return Promise.reject(new Error("no pods are simulated"));
    return Promise.resolve(workloads.watches.stream(request, this.#objects(request), this.next()));
  }

  #respond(request: KubeRequest): unknown {
    const { name, resource, plural } = targetOf(request);
    if (name === undefined && request.method !== "POST") return this.#list(request);
    if (resource === "deployments") return this.#callPipe(name ?? "", request);
    if (plural === "pipescalings") return this.#callScaling(name ?? "", request);
    return this.#callWorkloads(request);
  }

  /** A consistent read has the newest version of the cluster, whether the objects changed or not. */
  #list(request: KubeRequest): unknown {
    const items = [...this.#objects(request)].filter(selectionOf(request));
    return { metadata: { resourceVersion: this.next() }, items };
  }

  #objects(request: KubeRequest): Iterable<KubeObject> {
    switch (targetOf(request).plural) {
      case "nodes":
        return this.nodes;
      case "deployments":
        return this.deployments.values();
      case "statefulsets":
        return this.workloads?.statefulSet.object ? [this.workloads.statefulSet.object] : [];
      case "pipescalings":
        return this.scalings.values();
      case "pods":
        return this.workloads?.pods.values() ?? [];
      case "replicasets":
        return this.workloads?.replicaSets.values() ?? [];
      default:
        throw new Error(`${request.path} is not simulated`);
    }
  }

  #callWorkloads(request: KubeRequest): unknown {
    if (!this.workloads) throw new KubeApiError(request.method ?? "GET", 404, "{}");
    return this.workloads.call(request);
  }

  #callPipe(name: string, request: KubeRequest): Deployment {
    const { method = "GET", query, body } = request;
    if (method === "GET") return found(this.deployments, name);
    const patch: Deployment = parsed(body);
    const before = checked(this.deployments.get(name), patch.metadata);
    const after = merged(before, patch);
    if (query?.["dryRun"] !== undefined) {
      const managedFields = managedFieldsAfter(before, after, CONTROLLER, timeAt(this.clock.now())) ?? [];
      return { ...after, metadata: { ...after.metadata, managedFields } };
    }
    this.#judge(before, patch);
    const { [LAST_ROLLOUT_ANNOTATION]: _, ...stripped } = after.metadata.annotations ?? {};
    const stored = this.isStripping ? { ...after.metadata, annotations: stripped } : after.metadata;
    const written = this.write({ ...after, metadata: stored }, CONTROLLER);
    const isRollback = isRollbackIn(patch);
    this.restartJudge.wrote(before, written, { sentMs: this.#sentMs.get(request) ?? 0, isRollback });
    this.writes.push(`${name} ${this.#labelOf(name, patch)}`);
    return written;
  }

  #judge(before: Deployment, patch: Deployment): void {
    const { spec } = patch;
    // A resumption without a template, or with the template of the ReplicaSet, is no rollout.
    if (!spec || spec.paused === null) return;
    if (isRollbackIn(patch)) this.judge.putBack(toPipeView(before));
    else this.judge.given(toPipeView(before));
  }

  /** For the list of writes. */
  #labelOf(name: string, { spec }: Deployment): string {
    if (!spec) return "noted";
    return spec.paused === null ? "resumed" : this.sizeOf(name);
  }

  #callScaling(name: string, { method = "GET", body }: KubeRequest): ScalingObject {
    if (method === "GET") return found(this.scalings, name);
    const written: ScalingObject = parsed(body);
    if (method === "POST") return this.#create(written);
    this.statusPatchBytes.push(JSON.stringify(body).length);
    const before = checked(this.scalings.get(name), written.metadata);
    const status: PipeScalingStatus = parsed(patched(before.status, written.status, false));
    const after = { ...before, metadata: { ...before.metadata, resourceVersion: this.next() }, status };
    this.writes.push(`${name} ${status.conditions?.[0]?.reason} ${status.pipes?.summary}`);
    return this.putScaling(after, CONTROLLER);
  }

  #create(made: ScalingObject): ScalingObject {
    const { name } = made.metadata;
    if (this.scalings.has(name)) throw new KubeApiError("POST", 409, "{}");
    const resourceVersion = this.next();
    const stamps = { uid: `uid-${resourceVersion}`, resourceVersion, generation: 1 };
    const metadata = { ...made.metadata, ...stamps, creationTimestamp: timeAt(this.clock.now()) };
    this.writes.push(`create ${name}`);
    return this.putScaling({ ...made, metadata, status: { observedGeneration: -1 } }, CONTROLLER);
  }
}

/** The write succeeded, but its response was lost. */
export const LOST_ANSWER: Fault = { error: new KubeUnreachableError("cut short"), isDone: true };

function isRollbackIn({ metadata }: Deployment): boolean {
  return metadata.annotations?.[LAST_ROLLOUT_ANNOTATION]?.includes('"isRollback":true') ?? false;
}

export function refusal(message: string): Fault {
  return { error: new KubeApiError("PATCH /pipe", 422, JSON.stringify({ message })) };
}
