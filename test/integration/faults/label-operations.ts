import { setTimeout as delay } from "node:timers/promises";
import { RESIZE_AFTER_ANNOTATION } from "@pipe-scaling/local-cluster/resize-stages";
import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../../src/controller/names.ts";
import { collectionPath, DEPLOYMENTS, objectPath, PODS } from "../../../src/kube/paths.ts";
import type { Pod } from "../../../src/kube/pods.ts";
import type { ReplicaSet } from "../../../src/kube/workloads.ts";
import type { Kinds } from "./history.ts";
import type { Operation, OtherWriters } from "./operation.ts";
import { serviceOf } from "./pipe-view.ts";
import type { ServiceUnderTest } from "./service-under-test.ts";

const MOST_STRANGERS = 3;
/** Maximum wait for the resize of a pod, and from then until the request of the size that the pipe had before. */
const AWAITED_MS = 2000;
const SOON_MS = 1000;
/** Maximum time that a resize of a pod of a stranger takes. */
const RESIZE_MS = 4000;

type Deployment = Kinds["Deployment"];

/** Labels that owners put on running workloads, remove from them, or change to those of another service. */
export class LabelOperations implements OtherWriters {
  readonly operations: readonly Operation[];
  readonly #service: ServiceUnderTest;
  readonly #neighbor: ServiceUnderTest | undefined;
  #made = 0;

  /** @param neighbor another service in the same namespace */
  constructor(service: ServiceUnderTest, neighbor?: ServiceUnderTest) {
    this.#service = service;
    this.#neighbor = neighbor;
    const moves = [this.#move, this.#move, this.#moveToItsSize];
    this.operations = [
      this.#removeFromPipe,
      this.#removeFromTemplate,
      this.#removeFromPods,
      this.#createStranger,
      this.#label,
      this.#label,
      this.#label,
      this.#labelWithItsSize,
      this.#labelWithItsSize,
      ...(neighbor ? moves : []),
    ].map((operation) => operation.bind(this));
  }

  end(): Promise<void> {
    return Promise.resolve();
  }

  #removeFromPipe(): Promise<unknown> {
    const labels = { [this.#anyLabel()]: null };
    return this.#service.withPipe(async (name) => {
      await this.#patch(name, { metadata: { labels } });
      return name;
    });
  }

  /** A rollout follows, without labels on the new pods. */
  #removeFromTemplate(): Promise<unknown> {
    const labels = { [this.#anyLabel()]: null };
    return this.#service.withPipe(async (name) => {
      const pipe = await this.#service.environment.pipe(name);
      const { metadata }: ReplicaSet["spec"]["template"] = pipe.spec.template;
      if (metadata?.labels?.[TYPE_LABEL] === undefined) return false;
      await this.#patch(name, { spec: { template: { metadata: { labels } } } });
      return name;
    });
  }

  async #removeFromPods(): Promise<unknown> {
    const labels = { [this.#anyLabel()]: null };
    const isAll = this.#service.below(2) === 0;
    const { client, pipes } = this.#service.environment;
    return this.#service.withPipe(async (app) => {
      const { items } = await client.json<{ readonly items: readonly Pod[] }>({
        path: collectionPath(PODS, pipes),
        query: { labelSelector: `app=${app},${TYPE_LABEL}` },
      });
      for (const { metadata } of isAll ? items : items.slice(0, 1)) {
        await client.json({
          method: "PATCH",
          path: objectPath(PODS, pipes, metadata.name),
          patchType: "application/merge-patch+json",
          body: { metadata: { labels } },
        });
      }
      return items.length > 0 && app;
    });
  }

  /** A workload that is no pipe yet, and has any size. */
  async #createStranger(): Promise<unknown> {
    const { environment } = this.#service;
    const cores = this.#service.anySize();
    const replicas = 1 + this.#service.below(2);
    const podAnnotations = { [RESIZE_AFTER_ANNOTATION]: `${this.#service.below(RESIZE_MS)}ms` };
    if ((await this.#strangers()).length >= MOST_STRANGERS) return false;
    this.#made += 1;
    const name = `stranger-${environment.serviceId.slice(0, 4)}-${this.#made}`;
    // Labels on the pods alone do not make it a pipe.
    const podLabels = { [SERVICE_LABEL]: environment.serviceId, [TYPE_LABEL]: DATABASE_TYPE };
    await environment.createPipe({ name, cores, replicas, podLabels, podAnnotations, type: "other" });
    return `${name} with ${cores} cores`;
  }

  async #label(): Promise<unknown> {
    return (await this.#labelAny())?.metadata.name ?? false;
  }

  /** The pods are being resized to the size of the service when the size of the template is requested. */
  async #labelWithItsSize(): Promise<unknown> {
    const delayMs = this.#service.random() * SOON_MS;
    const resized = this.#service.sees("Pod", AWAITED_MS);
    const labeled = await this.#labelAny();
    if (!labeled) return false;
    await resized;
    await delay(delayMs);
    await this.#service.request(coresOf(labeled));
    return `${labeled.metadata.name} with ${coresOf(labeled)} cores after ${Math.round(delayMs)} ms`;
  }

  async #labelAny(): Promise<Deployment | undefined> {
    const number = this.#service.random();
    const strangers = await this.#strangers();
    const stranger = strangers[Math.floor(number * strangers.length)];
    if (!stranger) return undefined;
    const { name } = stranger.metadata;
    await this.#patch(name, { metadata: { labels: labelsFor(this.#service) } });
    this.#service.pipes.add(name);
    return stranger;
  }

  /** Workloads without the labels of a pipe. */
  async #strangers(): Promise<readonly Deployment[]> {
    return (await this.#service.deployments()).filter(
      (each) => serviceOf(each) === undefined && isSized(each),
    );
  }

  #move(): Promise<unknown> {
    return this.#service.withPipe(async (name) => {
      const neighbor = this.#neighbor;
      if (!neighbor) return false;
      await this.#patch(name, { metadata: { labels: labelsFor(neighbor) } });
      this.#service.pipes.delete(name);
      neighbor.pipes.add(name);
      return name;
    });
  }

  /** Moves a pipe to a service that has the size of its template, while its pods may have another one. */
  #moveToItsSize(): Promise<unknown> {
    const cores = this.#service.anySize();
    return this.#service.withPipe(async (name) => {
      const neighbor = this.#neighbor;
      const pipe = await this.#service.environment.pipe(name);
      if (!neighbor || !isSized(pipe)) return false;
      await neighbor.request(coresOf(pipe));
      const resized = this.#service.sees("Pod", AWAITED_MS);
      await this.#service.request(cores);
      await resized;
      await this.#patch(name, { metadata: { labels: labelsFor(neighbor) } });
      this.#service.pipes.delete(name);
      neighbor.pipes.add(name);
      return name;
    });
  }

  #anyLabel(): string {
    return this.#service.pick([SERVICE_LABEL, TYPE_LABEL]);
  }

  async #patch(name: string, body: object): Promise<void> {
    const { client, pipes } = this.#service.environment;
    await client.json({
      method: "PATCH",
      path: objectPath(DEPLOYMENTS, pipes, name),
      patchType: "application/merge-patch+json",
      query: { fieldManager: "owner" },
      body,
    });
  }
}

function labelsFor({ environment }: ServiceUnderTest): Readonly<Record<string, string>> {
  return { [SERVICE_LABEL]: environment.serviceId, [TYPE_LABEL]: DATABASE_TYPE };
}

function isSized(pipe: Pick<Deployment, "spec">): boolean {
  return Number.isInteger(coresOf(pipe));
}

/** Cores of the template. */
function coresOf({ spec }: Pick<Deployment, "spec">): number {
  return Number(spec.template.spec.containers[0]?.resources?.requests?.["cpu"]);
}
