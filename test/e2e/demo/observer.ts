import * as z from "zod";
import { API_VERSION, PLURAL } from "../../../src/crd/names.ts";
import type { PipeScaling } from "../../../src/crd/pipe-scaling.ts";
import { KubeClient } from "../../../src/kube/client.ts";
import { connect } from "../../../src/kube/connection.ts";
import { isCode } from "../../../src/kube/errors.ts";
import type { KubeObject } from "../../../src/kube/objects.ts";
import { collectionPath, DEPLOYMENTS, objectPath, STATEFUL_SETS } from "../../../src/kube/paths.ts";
import { ACME_PIPES, CONTAINER, DATABASE_PIPES, LOAD_PIPE } from "./objects.ts";
import type { ManagedWorkload } from "./ownership.ts";

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

  pipe(name: string): Promise<ManagedWorkload> {
    const resource = name === LOAD_PIPE ? STATEFUL_SETS : DEPLOYMENTS;
    return this.#kube.json({ path: objectPath(resource, ACME_PIPES, name) });
  }

  databasePipes(): Promise<ManagedWorkload[]> {
    return Promise.all(DATABASE_PIPES.map((name) => this.pipe(name)));
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

  /** Returns the UIDs and restart counts of the pods of a pipe, which reveal a restart. */
  async pods(namespace: string, pipe: string): Promise<string[]> {
    const response = await this.#kube.json({
      path: collectionPath({ apiVersion: "v1", plural: "pods" }, namespace),
      query: { labelSelector: `app.kubernetes.io/name=${pipe}` },
    });
    return pods
      .parse(response)
      .items.map(({ metadata, status }) =>
        [metadata.uid, ...status.containerStatuses.map(({ restartCount }) => restartCount)].join(" "),
      )
      .sort();
  }
}

const pods = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ uid: z.string() }),
      status: z.object({
        containerStatuses: z.array(z.object({ restartCount: z.int() })).default([]),
      }),
    }),
  ),
});

export function resourcesOf(pipe: ManagedWorkload) {
  const { resources } = pipe.spec.template.spec.containers.find(({ name }) => name === CONTAINER) ?? {};
  return {
    cpu: resources?.requests?.["cpu"] ?? "-",
    memory: resources?.requests?.["memory"] ?? "-",
    memoryLimit: resources?.limits?.["memory"] ?? "-",
  };
}

/** Returns true if every replica has the current template and is available. Only StatefulSets report revisions. */
export function isRolledOut({ metadata, spec, status }: ManagedWorkload): boolean {
  const { replicas } = spec;
  return (
    status?.observedGeneration === metadata.generation &&
    status?.replicas === replicas &&
    status?.updatedReplicas === replicas &&
    status?.availableReplicas === replicas &&
    status?.currentRevision === status?.updateRevision
  );
}

/** Returns the Ready condition if it is about the current generation. */
export function readyCondition(scaling: ObservedScaling | undefined) {
  const ready = scaling?.status?.conditions?.find(({ type }) => type === "Ready");
  return ready?.observedGeneration === scaling?.metadata.generation ? ready : undefined;
}
