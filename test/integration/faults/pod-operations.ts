import { LAST_ROLLOUT_ANNOTATION, TYPE_LABEL } from "../../../src/controller/names.ts";
import { isCode } from "../../../src/kube/errors.ts";
import type { KubeObject } from "../../../src/kube/objects.ts";
import { collectionPath, objectPath, PODS, type Resource } from "../../../src/kube/paths.ts";
import type { Pod } from "../../../src/kube/pods.ts";
import { injectedContainer, mutatingPolicy } from "../../support/mutating-policy.ts";
import type { Kinds } from "./history.ts";
import type { Operation, OtherWriters } from "./operation.ts";
import { serviceOf } from "./pipe-view.ts";
import type { ServiceUnderTest } from "./service-under-test.ts";

const GROUP = "admissionregistration.k8s.io";
const VERSION = `${GROUP}/v1`;
const POLICIES: Resource = { apiVersion: VERSION, plural: "mutatingadmissionpolicies" };
const BINDINGS: Resource = { apiVersion: VERSION, plural: "mutatingadmissionpolicybindings" };

/** Containers that run out of memory or are injected into new pods, and another program that resizes pods. */
export class PodOperations implements OtherWriters {
  readonly operations: readonly Operation[] = [
    this.#runOutOfMemory,
    this.#runOutOfMemory,
    this.#resizeByAnotherWriter,
    this.#inject,
    this.#stopInjecting,
    this.#stopInjecting,
  ].map((operation) => operation.bind(this));
  readonly #service: ServiceUnderTest;
  readonly #policy: string;

  constructor(service: ServiceUnderTest) {
    this.#service = service;
    this.#policy = `proxies-${service.environment.serviceId}`;
    service.onCalm(() => this.end());
  }

  async end(): Promise<void> {
    await this.#stopInjecting();
  }

  /** The kubelet reports two kills at once. The service may get any last good size back, and then the requested one. */
  async #runOutOfMemory(): Promise<unknown> {
    const pipes = await this.#service.deployments();
    for (const { metadata } of pipes) {
      const text = metadata.annotations?.[LAST_ROLLOUT_ANNOTATION] ?? "";
      const [, millicores] = /"lastGoodSize":"(\d+)m/.exec(text) ?? [];
      if (millicores !== undefined) this.#service.accept(Number(millicores) / 1000);
    }
    if (this.#service.requested === null) this.#service.acceptDefault();
    else this.#service.accept(this.#service.requested);
    return this.#withPod(async ({ metadata, status }) => {
      // The other service, to which the pipe may have moved, would get its size back.
      const isOwn = (pipe: Kinds["Deployment"]) =>
        serviceOf(pipe) === this.#service.environment.serviceId &&
        metadata.name.startsWith(`${pipe.metadata.name}-`);
      if (!pipes.some(isOwn)) return false;
      const terminated = { exitCode: 137, reason: "OOMKilled", finishedAt: new Date().toISOString() };
      const killed = (status?.containerStatuses ?? []).map(({ restartCount = 0, ...each }) => ({
        ...each,
        restartCount: restartCount + 2,
        lastState: { terminated },
      }));
      if (killed.length === 0) return false;
      await this.#patch(metadata.name, "status", "kubelet", { status: { containerStatuses: killed } });
      return metadata.name;
    });
  }

  /** Like a right-sizer. */
  #resizeByAnotherWriter(): Promise<unknown> {
    const cores = this.#service.anySize();
    return this.#withPod(async ({ metadata }) => {
      const memory = `${cores * 4}Gi`;
      const resources = { requests: { cpu: `${cores}`, memory }, limits: { memory } };
      await this.#patch(metadata.name, "resize", "right-sizer", {
        spec: { containers: [{ name: "pipe", resources }] },
      });
      return `${metadata.name} to ${cores} cores`;
    });
  }

  /** New pods of all pipes in the namespace get another container, as in a mesh. */
  async #inject(): Promise<unknown> {
    const { pipes: namespace } = this.#service.environment;
    const requests = { name: this.#policy, namespace, ...injectedContainer("proxy") };
    const [policy, binding] = mutatingPolicy(requests);
    await this.#create(POLICIES, policy);
    await this.#create(BINDINGS, binding);
    return true;
  }

  async #stopInjecting(): Promise<boolean> {
    const deleted = [await this.#delete(BINDINGS), await this.#delete(POLICIES)];
    return deleted.includes(true);
  }

  async #create(resource: Resource, body: object): Promise<void> {
    const { client } = this.#service.environment;
    await client.json<KubeObject>({ method: "POST", path: collectionPath(resource, undefined), body });
  }

  async #delete(resource: Resource): Promise<boolean> {
    const { client } = this.#service.environment;
    try {
      await client.json({ method: "DELETE", path: `${collectionPath(resource, undefined)}/${this.#policy}` });
      return true;
    } catch (error) {
      if (isCode(error, 404)) return false;
      throw error;
    }
  }

  async #withPod(operation: (pod: Pod) => Promise<unknown>): Promise<unknown> {
    const { client, pipes } = this.#service.environment;
    const number = this.#service.random();
    const { items } = await client.json<{ readonly items: readonly Pod[] }>({
      path: collectionPath(PODS, pipes),
      query: { labelSelector: TYPE_LABEL },
    });
    const pod = items.toSorted((a, b) => a.metadata.name.localeCompare(b.metadata.name))[
      Math.floor(number * items.length)
    ];
    return pod ? operation(pod) : false;
  }

  async #patch(name: string, subresource: string, fieldManager: string, body: object): Promise<void> {
    const { client, pipes } = this.#service.environment;
    await client.json({
      method: "PATCH",
      path: `${objectPath(PODS, pipes, name)}/${subresource}`,
      patchType: "application/strategic-merge-patch+json",
      query: { fieldManager },
      body,
    });
  }
}
