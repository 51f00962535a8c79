import { setTimeout as delay } from "node:timers/promises";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { parseQuantity } from "../../../src/domain/quantity.ts";
import { isCode } from "../../../src/kube/errors.ts";
import type { Node } from "../../../src/kube/objects.ts";
import { collectionPath, NODES, objectPath, PODS, type Resource } from "../../../src/kube/paths.ts";
import type { Pod } from "../../../src/kube/pods.ts";
import type { Operation, OtherWriters } from "./operation.ts";
import type { ServiceUnderTest } from "./service-under-test.ts";

const CORE: Pick<Resource, "apiVersion"> = { apiVersion: "v1" };
const QUOTAS: Resource = { ...CORE, plural: "resourcequotas" };
const RANGES: Resource = { ...CORE, plural: "limitranges" };

/** The admission plugins of the API server see a new limit after this time at the latest. */
const ENFORCED_MS = 1000;
/** CPU of the node that other owners leave, in cores. */
const MOST_LEFT = 10;

/** Limits in the namespace that refuse sizes and pods for a while, and pods of other owners that fill the only node. */
export class LimitOperations implements OtherWriters {
  readonly operations: readonly Operation[] = [
    this.#setQuota,
    this.#setMaximum,
    this.#setDefault,
    this.#lift,
    this.#lift,
    this.#lift,
    this.#fillNode,
    this.#emptyNode,
  ].map((operation) => operation.bind(this));
  readonly #service: ServiceUnderTest;
  readonly #filler: string;
  readonly #name: string;

  constructor(service: ServiceUnderTest) {
    this.#service = service;
    this.#name = `limit-${service.environment.serviceId.slice(0, 4)}`;
    this.#filler = `filler-${service.environment.serviceId.slice(0, 4)}`;
    service.onCalm(() => this.end());
  }

  async end(): Promise<void> {
    await this.#lift();
    await this.#emptyNode();
    await this.#replaceLimitedPods();
  }

  /** The sum of all pods, of the neighbor too, may be above it already. */
  #setQuota(): Promise<unknown> {
    const cores = this.#service.pick([4, 20, 40]);
    return this.#limit(QUOTAS, { hard: { "requests.cpu": `${cores}` } }, cores);
  }

  #setMaximum(): Promise<unknown> {
    const cores = 1 + this.#service.below(8);
    const max = this.#service.pick<object>([{ cpu: `${cores}` }, { memory: `${cores * 4}Gi` }]);
    return this.#limit(RANGES, { limits: [{ type: "Container", max }] }, cores);
  }

  /** New pods, and pods that are resized, get a CPU limit, which is below larger sizes. */
  #setDefault(): Promise<unknown> {
    const cores = 1 + this.#service.below(8);
    const limits = [{ type: "Container", default: { cpu: `${cores}` } }];
    return this.#limit(RANGES, { limits }, cores);
  }

  async #limit(resource: Resource, spec: object, mostCores: number): Promise<unknown> {
    const { environment } = this.#service;
    const body = { metadata: { name: this.#name }, spec };
    await this.#lift();
    await environment.create(resource, environment.pipes, body);
    await delay(ENFORCED_MS);
    this.#service.limit(mostCores);
    return JSON.stringify(spec);
  }

  /** A ReplicaSet tries rejected pods again at once if its Deployment changes. */
  async #lift(): Promise<unknown> {
    this.#service.limit(undefined);
    const deleted = [await this.#delete(QUOTAS, this.#name), await this.#delete(RANGES, this.#name)];
    if (!deleted.includes(true)) return false;
    await delay(ENFORCED_MS);
    for (const name of this.#service.pipes)
      await this.#service.environment.patchPipe(name, {
        metadata: { annotations: { lifted: `${this.#service.random()}` } },
      });
    return true;
  }

  /** A pod keeps the CPU limit that it was created or resized with. A new one may get it while the API server is slow. */
  async #replaceLimitedPods(): Promise<void> {
    const { client, pipes } = this.#service.environment;
    const none = async () => {
      const { items } = await client.json<{ readonly items: readonly unknown[] }>({
        path: collectionPath(RANGES, pipes),
      });
      // The neighbor ends its own, and then replaces the pods.
      if (items.length > 0) return true;
      const limited = (await this.#pods(pipes)).filter(({ spec }) =>
        spec.containers.some(({ resources }) => resources?.limits?.["cpu"] !== undefined),
      );
      for (const { metadata } of limited) await this.#delete(PODS, metadata.name);
      return limited.length === 0;
    };
    await waitFor(none, { what: "all pods with a default CPU limit to be replaced" });
  }

  async #fillNode(): Promise<unknown> {
    const { environment } = this.#service;
    const left = this.#service.below(MOST_LEFT);
    const { items } = await environment.client.json<{ readonly items: readonly Node[] }>({
      path: collectionPath(NODES, undefined),
    });
    const [node] = items;
    if (!node) return false;
    const pods = (await this.#pods(undefined)).filter(({ spec }) => spec.nodeName !== undefined);
    const used = pods.flatMap(({ spec }) => spec.containers).map((each) => coresOf(each));
    const free = coresIn(node.status?.allocatable?.["cpu"]) - used.reduce((sum, cores) => sum + cores, 0);
    if (!(free > left)) return false;
    const resources = { requests: { cpu: `${Math.floor((free - left) * 1000)}m`, memory: "1Gi" } };
    await environment.create(PODS, environment.pipes, {
      metadata: { name: this.#filler },
      spec: {
        nodeName: node.metadata.name,
        terminationGracePeriodSeconds: 0,
        containers: [{ name: "filler", image: "filler", resources }],
      },
    });
    return `except for ${left} cores`;
  }

  #emptyNode(): Promise<boolean> {
    return this.#delete(PODS, this.#filler);
  }

  async #pods(namespace: string | undefined): Promise<readonly Pod[]> {
    const { client } = this.#service.environment;
    return (await client.json<{ readonly items: readonly Pod[] }>({ path: collectionPath(PODS, namespace) }))
      .items;
  }

  async #delete(resource: Resource, name: string): Promise<boolean> {
    const { client, pipes } = this.#service.environment;
    try {
      await client.json({ method: "DELETE", path: objectPath(resource, pipes, name) });
      return true;
    } catch (error) {
      if (isCode(error, 404)) return false;
      throw error;
    }
  }
}

function coresOf({ resources }: Pod["spec"]["containers"][number]): number {
  return coresIn(resources?.requests?.["cpu"]);
}

function coresIn(quantity = "0"): number {
  return Number(parseQuantity(quantity) ?? 0n) / 1e9;
}
