import * as z from "zod";
import { API_VERSION, PLURAL } from "../../../src/crd/names.ts";
import type { PipeScaling } from "../../../src/crd/pipe-scaling.ts";
import { KubeClient } from "../../../src/kube/client.ts";
import { connect } from "../../../src/kube/connection.ts";
import { isCode } from "../../../src/kube/errors.ts";
import type { KubeObject } from "../../../src/kube/objects.ts";
import { collectionPath, DEPLOYMENTS, objectPath } from "../../../src/kube/paths.ts";
import { ACME_PIPES, CONTAINER, DATABASE_PIPES } from "./objects.ts";
import type { ManagedDeployment } from "./ownership.ts";

const PIPE_SCALINGS = { apiVersion: API_VERSION, plural: PLURAL };

export type ObservedScaling = PipeScaling & KubeObject;

/** Reads the cluster as an administrator, to check the claims of the demo. */
export class Observer {
  readonly #kube: KubeClient;

  private constructor(kube: KubeClient) {
    this.#kube = kube;
  }

  static async open(kubeconfig: string): Promise<Observer> {
    return new Observer(new KubeClient(await connect(kubeconfig)));
  }

  close(): Promise<void> {
    return this.#kube.close();
  }

  deployment(name: string): Promise<ManagedDeployment> {
    return this.#kube.json({ path: objectPath(DEPLOYMENTS, ACME_PIPES, name) });
  }

  databasePipes(): Promise<ManagedDeployment[]> {
    return Promise.all(DATABASE_PIPES.map((name) => this.deployment(name)));
  }

  async scaling(serviceId: string): Promise<ObservedScaling | undefined> {
    try {
      return await this.#kube.json({ path: objectPath(PIPE_SCALINGS, ACME_PIPES, serviceId) });
    } catch (error) {
      if (isCode(error, 404)) return undefined;
      throw error;
    }
  }

  /** Returns the spec of every PipeScaling of every tenant. */
  async allSpecs(): Promise<unknown[]> {
    const { items } = await this.#kube.json<{ readonly items: readonly ObservedScaling[] }>({
      path: collectionPath(PIPE_SCALINGS, undefined),
    });
    return items.map(({ metadata, spec }) => [metadata.name, metadata.generation, spec]);
  }

  /** Returns the UIDs of pods by pipe, which reveal a restart. */
  async podIds(namespace: string, pipe: string): Promise<string[]> {
    const response = await this.#kube.json({
      path: collectionPath({ apiVersion: "v1", plural: "pods" }, namespace),
      query: { labelSelector: `app.kubernetes.io/name=${pipe}` },
    });
    return pods
      .parse(response)
      .items.map(({ metadata }) => metadata.uid)
      .sort();
  }
}

const pods = z.object({ items: z.array(z.object({ metadata: z.object({ uid: z.string() }) })) });

export function resourcesOf(pipe: ManagedDeployment) {
  const { resources } = pipe.spec.template.spec.containers.find(({ name }) => name === CONTAINER) ?? {};
  return {
    cpu: resources?.requests?.["cpu"] ?? "-",
    memory: resources?.requests?.["memory"] ?? "-",
    memoryLimit: resources?.limits?.["memory"] ?? "-",
  };
}

/** Returns true if every replica has the current template and is available. */
export function isRolledOut({ metadata, spec, status }: ManagedDeployment): boolean {
  const { replicas } = spec;
  return (
    status?.observedGeneration === metadata.generation &&
    status?.replicas === replicas &&
    status?.updatedReplicas === replicas &&
    status?.availableReplicas === replicas
  );
}

/** Returns the Ready condition if it is about the current generation. */
export function readyCondition(scaling: ObservedScaling | undefined) {
  const ready = scaling?.status?.conditions?.find(({ type }) => type === "Ready");
  return ready?.observedGeneration === scaling?.metadata.generation ? ready : undefined;
}
