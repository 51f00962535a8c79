import type { Cluster } from "@pipe-scaling/local-cluster";
import { apply } from "@pipe-scaling/local-cluster/kubectl";
import { START_AFTER_ANNOTATION } from "@pipe-scaling/local-cluster/stages";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import * as z from "zod";
import { PIPE_SCALINGS } from "../../src/crd/names.ts";
import type { PipeScaling } from "../../src/crd/pipe-scaling.ts";
import type { KubeClient } from "../../src/kube/client.ts";
import type { KubeObject } from "../../src/kube/objects.ts";
import { DEPLOYMENTS, objectPath } from "../../src/kube/paths.ts";
import type { Deployment } from "../../src/kube/workloads.ts";
import { pipeScaling } from "../e2e/demo/processes.ts";
import { pipeDeployment } from "../support/fixtures/pipe.ts";
import { basic } from "../support/fixtures/records.ts";
import type { Release } from "./accounts.ts";
import type { UnpackedImage } from "./image.ts";
import { PodProcess } from "./pod-process.ts";

const made = z.object({ id: z.guid() });
const madeKey = z.object({ keyId: z.string(), keySecret: z.string() });

/** A service with three pipes, in its own organization. */
export interface Service {
  readonly id: string;
  /** Path of the service's size in the API. */
  readonly path: string;
  /** Namespace of the pipes. */
  readonly namespace: string;
  /** The Authorization header of a key of its organization. */
  readonly authorization: string;
}

/** Names of the pipes of a service. */
function pipesOf({ id }: Service): readonly string[] {
  return ["a", "b", "c"].map((name) => `${name}-${id}`);
}

/** An installed release with running processes, for the platform team and for callers. */
export class OperatedRelease {
  readonly #cluster: Cluster;
  readonly #admin: KubeClient;
  readonly #image: UnpackedImage;
  readonly #release: Release;
  #running: PodProcess[] = [];
  #url = "";

  constructor(cluster: Cluster, admin: KubeClient, image: UnpackedImage, release: Release) {
    this.#cluster = cluster;
    this.#admin = admin;
    this.#image = image;
    this.#release = release;
  }

  /** URL of the API. */
  get url(): string {
    return this.#url;
  }

  /** Replaces the processes with those of the current release. */
  async start(): Promise<void> {
    await this.stop();
    const start = (component: "api" | "controller") =>
      PodProcess.start(this.#image, this.#cluster, this.#release, component);
    const api = await start("api");
    this.#running = [api];
    this.#running.push(await start("controller"));
    this.#url = api.url;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#running.splice(0).map((each) => each.stop()));
  }

  /** Creates the records of a service with pipes in this namespace, but no pipes. */
  async addService(namespace = this.#release.pipes): Promise<Service> {
    const { id: organization } = made.parse(
      await this.#command("admin", "organization", "create", "--name", "Acme", "--tier", "basic"),
    );
    const ofAcme = ["--organization", organization];
    const { id } = made.parse(
      await this.#command(
        "admin",
        "service",
        "create",
        ...ofAcme,
        "--name",
        "orders",
        "--pipes-namespace",
        namespace,
      ),
    );
    const key = madeKey.parse(
      await this.#command("admin", "key", "create", ...ofAcme, "--name", "ci", "--role", "admin"),
    );
    const path = `/v1/organizations/${organization}/services/${id}`;
    return { id, path, namespace, authorization: basic(key.keyId, key.keySecret) };
  }

  /** Adds pipes of one core each. */
  async addPipes(service: Service): Promise<void> {
    const { id: serviceId, namespace } = service;
    // Long enough to act in the middle of a rollout.
    const podAnnotations = { [START_AFTER_ANNOTATION]: "1s" };
    const pipes = pipesOf(service).map((name) =>
      pipeDeployment({ name, namespace, serviceId, cores: 1, podAnnotations }),
    );
    await apply(this.#cluster, pipes);
  }

  /** @returns the status of the response */
  async requestSize(cores: number, { path, authorization }: Service): Promise<number> {
    const { status } = await fetch(`${this.#url}${path}/pipesCdcScaling`, {
      method: "PATCH",
      headers: { authorization, "content-type": "application/json" },
      body: JSON.stringify({ replicaCpuMillicores: cores * 1000 }),
    });
    return status;
  }

  scaling({ id, namespace }: Service): Promise<KubeObject & PipeScaling> {
    return this.#admin.json({ path: objectPath(PIPE_SCALINGS, namespace, id) });
  }

  /** Waits until the newest spec of a service has this reason. */
  async readyFor(reason: string, service: Service): Promise<void> {
    await waitFor(
      async () => {
        const { metadata, status } = await this.scaling(service);
        const ready = status?.conditions?.find(({ type }) => type === "Ready");
        return ready?.reason === reason && ready.observedGeneration === metadata.generation;
      },
      { what: `the service to be ${reason}`, timeoutMs: 60_000 },
    );
  }

  async cpuOfPipes(service: Service): Promise<readonly unknown[]> {
    const pipes = pipesOf(service).map((name) =>
      this.#admin.json<Deployment>({ path: objectPath(DEPLOYMENTS, service.namespace, name) }),
    );
    return (await Promise.all(pipes)).map(
      ({ spec }) => spec.template.spec.containers[0]?.resources?.requests?.["cpu"],
    );
  }

  /** Runs `pipe-scaling …` as the platform team does. */
  #command(...args: readonly string[]): Promise<unknown> {
    const { signal } = new AbortController();
    return pipeScaling(this.#cluster, [...args, "--namespace", this.#release.records], signal);
  }
}
