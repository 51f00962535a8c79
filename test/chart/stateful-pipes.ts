import type { Cluster } from "@pipe-scaling/local-cluster";
import { apply } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { REVISION_HASH_LABEL, SERVICE_LABEL, TYPE_LABEL } from "../../src/controller/names.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../src/crd/names.ts";
import type { KubeClient, KubeRequest } from "../../src/kube/client.ts";
import { isCode } from "../../src/kube/errors.ts";
import type { KubeObject, ManagedFields } from "../../src/kube/objects.ts";
import { objectPath, PODS, type Resource, STATEFUL_SETS } from "../../src/kube/paths.ts";
import { type PipeOptions, pipeDeployment } from "../support/fixtures/pipe.ts";
import { PatientClient } from "../support/patient-client.ts";
import { clientOf, install, prepareRelease, type Release, remove } from "./accounts.ts";
import { dryRunOf, outcomeOf } from "./denials.ts";

export const PIPE_LABELS = { [SERVICE_LABEL]: "a", [TYPE_LABEL]: "database" };

export interface StatefulOptions extends Partial<PipeOptions> {
  readonly resources?: object;
  /** Fields of the spec that a Deployment does not have. */
  readonly spec?: object;
  readonly podSpec?: object;
}

/** A part of a StatefulSet. */
export interface PatchOfPipe {
  readonly metadata?: object;
  readonly spec?: object;
}

/** The StatefulSet of a pipe, as its owner creates it. */
export function pipeStatefulSet(
  name: string,
  namespace: string,
  { resources, spec: others, podSpec, ...options }: StatefulOptions = {},
) {
  const deployment = pipeDeployment({
    name,
    namespace,
    serviceId: "a",
    cores: 1,
    replicas: 0,
    podLabels: PIPE_LABELS,
    ...options,
  });
  const { replicas, selector, template } = deployment.spec;
  const containers = template.spec.containers.map((each) => ({
    ...each,
    ...(resources ? { resources } : {}),
  }));
  const pod = { ...template, spec: { ...template.spec, containers, ...podSpec } };
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: deployment.metadata,
    spec: {
      serviceName: name,
      podManagementPolicy: "Parallel",
      replicas,
      selector,
      template: pod,
      ...others,
    },
  };
}

export interface LabeledPod extends KubeObject {
  readonly metadata: KubeObject["metadata"];
  readonly status?: {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

/** StatefulSets of pipes in a release, the token of its controller, and an administrator. */
export class StatefulPipes {
  readonly release: Release;
  readonly controller: KubeClient;
  readonly admin: PatientClient;
  readonly #cluster: Cluster;

  private constructor(cluster: Cluster, release: Release, controller: KubeClient, admin: PatientClient) {
    this.#cluster = cluster;
    this.release = release;
    this.controller = controller;
    this.admin = admin;
  }

  /** Resolves when the policies are in force. */
  static async start(cluster: Cluster): Promise<StatefulPipes> {
    const release = await prepareRelease(cluster);
    await install(cluster, release, "--set", "crds.enabled=false");
    const controller = await clientOf(cluster, release, "controller");
    const pipes = new StatefulPipes(cluster, release, controller, await PatientClient.of(cluster));
    await pipes.create("first", { replicas: 1 });
    await pipes.pod("first-0", isReady);
    const labels = { a: "b", [REVISION_HASH_LABEL]: "b" };
    const denied: readonly (() => Promise<string>)[] = [
      () => pipes.send("first", { metadata: { labels }, spec: { replicas: 2 } }),
      () => pipes.patchPod("first-0", { metadata: { labels } }),
      () => pipes.deletePod("first-0", { gracePeriodSeconds: 1 }),
    ];
    for (const attempt of denied) {
      const isDenied = async () => (await attempt()).includes("ValidatingAdmissionPolicy");
      await waitFor(isDenied, { what: "the policies to take effect", timeoutMs: 15_000 });
    }
    return pipes;
  }

  async end(): Promise<void> {
    await this.controller.close();
    await this.admin.close();
    await remove(this.#cluster, this.release);
  }

  create(name: string, options: StatefulOptions = {}): Promise<unknown> {
    return apply(this.#cluster, [pipeStatefulSet(name, this.release.pipes, options)]);
  }

  async uidOf(name: string): Promise<string> {
    return (await this.admin.json<KubeObject>({ path: this.path(name) })).metadata.uid;
  }

  path(name: string, resource: Resource = STATEFUL_SETS): string {
    return objectPath(resource, this.release.pipes, name);
  }

  request(path: string, body: object, fieldManager = CONTROLLER_FIELD_MANAGER): KubeRequest {
    const patchType = "application/strategic-merge-patch+json";
    return { method: "PATCH", path, query: { fieldManager }, patchType, body };
  }

  /** Returns the outcome of a write of the controller to a StatefulSet, which is not stored. */
  send(name: string, body: object): Promise<string> {
    return dryRunOf(this.controller, this.request(this.path(name), body));
  }

  /** Returns the outcome of a write of the controller with other records of field managers, and other changes. */
  sendManagers(
    name: string,
    edit: (records: readonly ManagedFields[]) => readonly object[],
    change: PatchOfPipe = {},
  ): Promise<string> {
    const attempt = async () => {
      const { metadata } = await this.admin.json<KubeObject>({ path: this.path(name) });
      const { managedFields = [], resourceVersion } = metadata;
      const edited = { ...change.metadata, resourceVersion, managedFields: edit(managedFields) };
      const body = { ...change, metadata: edited };
      const outcome = await this.send(name, body);
      // The controller manager has written the status meanwhile.
      return outcome.startsWith("409 ") ? undefined : outcome;
    };
    return waitFor(attempt, { what: "a write without a conflict" });
  }

  /** Stores a write of the controller to a StatefulSet. */
  write(name: string, body: object): Promise<KubeObject> {
    return this.controller.json(this.request(this.path(name), body));
  }

  /** Stores a write of the owner to a StatefulSet. */
  own(name: string, body: object): Promise<KubeObject> {
    return this.admin.json(this.request(this.path(name), body, "owner"));
  }

  patchPod(name: string, body: object, client: KubeClient = this.controller): Promise<string> {
    return dryRunOf(client, this.request(this.path(name, PODS), body));
  }

  /** @param options of the deletion; the API server ignores the query of a request with a body */
  deletePod(name: string, options: object = {}): Promise<string> {
    const body = { dryRun: ["All"], ...options };
    return outcomeOf(this.controller.json({ method: "DELETE", path: this.path(name, PODS), body }));
  }

  /** Waits until the pod exists and satisfies a condition. */
  pod(name: string, isExpected: (pod: LabeledPod) => boolean): Promise<LabeledPod> {
    const read = async () => {
      try {
        const pod = await this.admin.json<LabeledPod>({ path: this.path(name, PODS) });
        return isExpected(pod) ? pod : undefined;
      } catch (error) {
        if (isCode(error, 404)) return undefined;
        throw error;
      }
    };
    return waitFor(read, { what: `the pod ${name} to be as expected` });
  }
}

export function isReady({ status }: LabeledPod): boolean {
  return status?.conditions?.some((each) => each.type === "Ready" && each.status === "True") ?? false;
}
