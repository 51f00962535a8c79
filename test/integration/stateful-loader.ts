import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { collectionPath, objectPath, PODS, STATEFUL_SETS } from "../../src/kube/paths.ts";
import type { Pod } from "../../src/kube/pods.ts";
import type { StatefulSet } from "../../src/kube/workloads.ts";
import { pipeStatefulSet, type StatefulSetOptions } from "../support/fixtures/pipe.ts";
import type { TestEnvironment } from "../support/test-environment.ts";
import { isAdopted } from "./is-adopted.ts";

type Options = Omit<StatefulSetOptions, "namespace" | "serviceId"> & { readonly serviceId?: string };

/** The StatefulSets of a test, and what their owner does with them. The name is `loader` unless a test gives another one. */
export class Loaders {
  readonly #environment: TestEnvironment;

  constructor(environment: TestEnvironment) {
    this.#environment = environment;
  }

  /** Three pods of one core. */
  async create(options: Partial<Options> = {}): Promise<void> {
    const { pipes: namespace, serviceId } = this.#environment;
    const made = pipeStatefulSet({ name: "loader", serviceId, cores: 1, replicas: 3, ...options, namespace });
    await this.#environment.create(STATEFUL_SETS, namespace, made);
  }

  read(name = "loader"): Promise<StatefulSet> {
    return this.#environment.client.json({ path: objectPath(STATEFUL_SETS, this.#environment.pipes, name) });
  }

  /** A change of the spec by the owner. */
  patch(spec: object, name = "loader"): Promise<StatefulSet> {
    return this.patchObject({ spec }, name);
  }

  patchObject(body: object, name = "loader"): Promise<StatefulSet> {
    return this.#environment.client.json({
      method: "PATCH",
      path: objectPath(STATEFUL_SETS, this.#environment.pipes, name),
      patchType: "application/strategic-merge-patch+json",
      query: { fieldManager: "owner" },
      body,
    });
  }

  /** The pods of a StatefulSet, sorted by name. */
  async pods(name = "loader"): Promise<readonly Pod[]> {
    const { client, pipes } = this.#environment;
    const query = { labelSelector: `app=${name}` };
    const { items } = await client.json<{ readonly items: readonly Pod[] }>({
      path: collectionPath(PODS, pipes),
      query,
    });
    return items.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  }

  async patchPod(name: string, metadata: object): Promise<void> {
    await this.#environment.client.json({
      method: "PATCH",
      path: objectPath(PODS, this.#environment.pipes, name),
      patchType: "application/merge-patch+json",
      body: { metadata },
    });
  }

  /** CPU requests of the pods. */
  async sizes(name?: string): Promise<readonly (string | undefined)[]> {
    return (await this.pods(name)).map(cpuOf);
  }

  async uids(name?: string): Promise<readonly string[]> {
    return (await this.pods(name)).map(({ metadata }) => metadata.uid);
  }

  /** Waits until the PipeScaling is ready, and the StatefulSet is adopted and all its pods are available. */
  async ready(name = "loader"): Promise<void> {
    await this.#environment.waitForCondition("Ready", "True");
    await waitFor(
      async () => {
        const object = await this.read(name);
        // A later write of the adoption would count as one of a commit.
        return object.status?.availableReplicas === object.spec.replicas && isAdopted(object);
      },
      { what: `${name} to be adopted and all its pods to be available` },
    );
  }
}

export function cpuOf({ spec }: Pod): string | undefined {
  return spec.containers[0]?.resources?.requests?.["cpu"];
}

export function templateCpu({ spec }: StatefulSet): string | undefined {
  return spec.template.spec.containers[0]?.resources?.requests?.["cpu"];
}

export function partitionIn({ spec }: StatefulSet): number | undefined {
  return spec.updateStrategy?.rollingUpdate?.partition;
}
