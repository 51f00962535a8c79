import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { LAST_ROLLOUT_ANNOTATION } from "../../../src/controller/names.ts";
import { API_VERSION, KIND, PIPE_SCALINGS } from "../../../src/crd/names.ts";
import type { PipeScalingSpec } from "../../../src/crd/pipe-scaling.ts";
import { isCode } from "../../../src/kube/errors.ts";
import { collectionPath, DEPLOYMENTS, objectPath } from "../../../src/kube/paths.ts";
import type { Deployment } from "../../../src/kube/workloads.ts";
import { ifPossible, type Operation, type OtherWriters } from "./operation.ts";
import type { ServiceUnderTest } from "./service-under-test.ts";

/** Duration and interval of repeated replacements of a pipe. */
const REPLACING_MS = 3000;
const REPLACE_EVERY_MS = 200;

interface ScalingCopy {
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: PipeScalingSpec;
}

/** Programs that write whole objects: deployment tools, backups, and kubectl. */
export class ObjectWriters implements OtherWriters {
  readonly operations: readonly Operation[] = [
    this.#removeAnnotation,
    this.#replacePipe,
    this.#replaceForAWhile,
    this.#undoRollout,
    this.#backUp,
    this.#backUp,
    this.#recreatePipe,
    this.#restorePipe,
    this.#restoreScaling,
  ].map((operation) => operation.bind(this));
  readonly #service: ServiceUnderTest;
  readonly #pipes = new Map<string, Deployment>();
  #scaling: ScalingCopy | undefined;
  #replacing: Promise<unknown> = Promise.resolve();
  #isReplacing = false;

  constructor(service: ServiceUnderTest) {
    this.#service = service;
  }

  async end(): Promise<void> {
    await this.#replacing;
  }

  #removeAnnotation(): Promise<unknown> {
    const metadata = { annotations: { [LAST_ROLLOUT_ANNOTATION]: null } };
    return this.#service.withPipe((name) => this.#service.environment.patchPipe(name, { metadata }));
  }

  /** Like a program that applies whole manifests, without our annotation and with its own size. */
  #replacePipe(): Promise<unknown> {
    return this.#service.withPipe(async (name) => this.#put(name, manifestOf(await this.#pipe(name))));
  }

  /** Replaces one pipe repeatedly. */
  async #replaceForAWhile(): Promise<unknown> {
    if (this.#isReplacing) return false;
    return this.#service.withPipe(async (name) => {
      const manifest = manifestOf(await this.#pipe(name));
      this.#isReplacing = true;
      this.#replacing = this.#replaceRepeatedly(name, manifest).finally(() => {
        this.#isReplacing = false;
      });
    });
  }

  async #replaceRepeatedly(name: string, manifest: object): Promise<void> {
    const until = performance.now() + REPLACING_MS;
    while (performance.now() < until) {
      await ifPossible(() => this.#put(name, manifest));
      await delay(REPLACE_EVERY_MS);
    }
  }

  #undoRollout(): Promise<unknown> {
    const { cluster, pipes } = this.#service.environment;
    return this.#service.withPipe((name) =>
      kubectl(cluster, ["rollout", "undo", `deployment/${name}`, "--namespace", pipes]),
    );
  }

  /** Saves copies of a pipe and of the PipeScaling. */
  async #backUp(): Promise<void> {
    await this.#service.withPipe(async (name) => this.#pipes.set(name, await this.#pipe(name)));
    const { metadata, spec = {} } = await this.#service.environment.scaling();
    this.#scaling = { annotations: metadata.annotations ?? {}, spec };
  }

  /** Deletes a pipe, and creates it again with its annotations. */
  #recreatePipe(): Promise<unknown> {
    return this.#service.withPipe(async (name) => this.#recreate(name, await this.#pipe(name)));
  }

  /** Restores an older copy of a pipe, by an update or after a deletion. */
  #restorePipe(): Promise<unknown> {
    return this.#service.withPipe(async (name) => {
      const copy = this.#pipes.get(name);
      if (!copy) return false;
      if (this.#service.below(2) === 0) await this.#put(name, withAnnotations(copy));
      else await this.#recreate(name, copy);
      return name;
    });
  }

  async #recreate(name: string, copy: Deployment): Promise<void> {
    const { client, pipes } = this.#service.environment;
    await client.json({ method: "DELETE", path: objectPath(DEPLOYMENTS, pipes, name) });
    this.#service.pipes.delete(name);
    await client.json({
      method: "POST",
      path: collectionPath(DEPLOYMENTS, pipes),
      query: { fieldManager: "restorer" },
      body: withAnnotations(copy),
    });
    this.#service.pipes.add(name);
  }

  /** Restores an older PipeScaling, by an update or after a deletion. This requests its size again. */
  async #restoreScaling(): Promise<unknown> {
    if (!this.#scaling) return false;
    const { annotations, spec } = this.#scaling;
    const { client, pipes, serviceId } = this.#service.environment;
    this.#service.acceptSpec(spec);
    const body = { apiVersion: API_VERSION, kind: KIND, metadata: { name: serviceId, annotations }, spec };
    const query = { fieldManager: "restorer" };
    const resourceVersion = await this.#scalingVersion();
    return client.json(
      resourceVersion === undefined
        ? { method: "POST", path: collectionPath(PIPE_SCALINGS, pipes), query, body }
        : {
            method: "PUT",
            path: objectPath(PIPE_SCALINGS, pipes, serviceId),
            query,
            body: { ...body, metadata: { ...body.metadata, resourceVersion } },
          },
    );
  }

  async #scalingVersion(): Promise<string | undefined> {
    try {
      return (await this.#service.environment.scaling()).metadata.resourceVersion;
    } catch (error) {
      if (isCode(error, 404)) return undefined;
      throw error;
    }
  }

  async #put(name: string, body: object): Promise<void> {
    const { client, pipes } = this.#service.environment;
    const query = { fieldManager: "replacer" };
    await client.json({ method: "PUT", path: objectPath(DEPLOYMENTS, pipes, name), query, body });
  }

  #pipe(name: string): Promise<Deployment> {
    return this.#service.environment.pipe(name);
  }
}

/** The manifest of its owner, with one core. */
function manifestOf({ metadata, spec }: Deployment): object {
  const { name, namespace, labels = {} } = metadata;
  const resources = { requests: { cpu: "1", memory: "4Gi" }, limits: { memory: "4Gi" } };
  const containers = spec.template.spec.containers.map((container) => ({ ...container, resources }));
  const template = { ...spec.template, spec: { ...spec.template.spec, containers } };
  return {
    apiVersion: DEPLOYMENTS.apiVersion,
    kind: "Deployment",
    metadata: { name, namespace, labels },
    spec: { ...spec, template },
  };
}

/** The manifest in a backup: without fields that only the API server sets, and with an annotation of the restore. */
function withAnnotations({ metadata, spec }: Deployment): object {
  const { name, namespace, labels = {}, annotations = {} } = metadata;
  return {
    apiVersion: DEPLOYMENTS.apiVersion,
    kind: "Deployment",
    metadata: { name, namespace, labels, annotations: { ...annotations, restored: randomUUID() } },
    spec,
  };
}
