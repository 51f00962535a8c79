import { randomUUID } from "node:crypto";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { serviceAccountKubeconfig } from "@pipe-scaling/local-cluster/service-account";
import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { runApi } from "../../src/api/setup.ts";
import { API_VERSION, KIND, PLURAL } from "../../src/crd/names.ts";
import type { PipeScalingSpec, PipeScalingStatus } from "../../src/crd/pipe-scaling.ts";
import { describeSize, sizeOfCores } from "../../src/domain/size.ts";
import type { KubeClient } from "../../src/kube/client.ts";
import type { KubeObject } from "../../src/kube/objects.ts";
import { CONFIG_MAPS, collectionPath, objectPath } from "../../src/kube/paths.ts";
import { type ApiSettings, apiSettings, toApiSettings } from "../../src/settings/api.ts";
import { readOptions } from "../../src/settings/option.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { applyAll } from "../support/apply.ts";
import {
  type KeyFields,
  type KeyRecord,
  keyRecord,
  organizationRecord,
  serviceRecord,
} from "../support/fixtures/records.ts";
import { accountName, clusterRoleName, shippedAccount } from "../support/fixtures/shipped-account.ts";
import { installCrds } from "../support/install-crds.ts";
import { PatientClient } from "../support/patient-client.ts";
import { type Client, clientOf } from "./client.ts";

export const PIPE_SCALINGS = { apiVersion: API_VERSION, plural: PLURAL };

/** A PipeScaling with its managed fields. */
export interface PipeScalingObject extends KubeObject {
  readonly spec?: PipeScalingSpec;
  readonly status?: PipeScalingStatus;
  readonly metadata: KubeObject["metadata"] & {
    readonly managedFields?: readonly { readonly manager: string; readonly fieldsV1?: object }[];
  };
}

type LogLine = Readonly<Record<string, unknown>>;

interface ClusterAccess {
  readonly cluster: Cluster;
  readonly admin: KubeClient;
  readonly kubeconfig: string;
}

/** The API in this process, with the permissions of the chart. */
export interface RunningApi {
  readonly url: string;
  readonly opsUrl: string;
  readonly send: Client;
  readonly log: readonly LogLine[];
  /** Resolves when the API has received the key from its watch. */
  waitForKey(authorization: string): Promise<void>;
  /** Resolves when the API has received the key and the record of its organization. */
  waitForOrganization(authorization: string): Promise<void>;
  stop(): Promise<void>;
}

/** An organization with keys by role, and a service whose pipes run 2 cores. */
export interface Tenant {
  readonly organizationId: string;
  readonly serviceId: string;
  /** Path of the service's size. */
  readonly path: string;
  readonly admin: KeyRecord;
  readonly developer: KeyRecord;
  readonly withoutRole: KeyRecord;
}

/** Returns a tenant that is not in the cluster yet. */
export function newTenant(): Tenant {
  const [organizationId, serviceId] = [randomUUID(), randomUUID()];
  return {
    organizationId,
    serviceId,
    path: `/v1/organizations/${organizationId}/services/${serviceId}/pipesCdcScaling`,
    admin: keyRecord({ organizationId }),
    developer: keyRecord({ organizationId, roles: ["developer"] }),
    withoutRole: keyRecord({ organizationId, roles: ["billing"] }),
  };
}

/** A test file's namespaces for records and pipes. They exist after `create`. */
export class ApiEnvironment {
  readonly records: string;
  readonly pipes: string;
  #access: ClusterAccess | undefined;

  constructor({ records, pipes }: Pick<ApiEnvironment, "records" | "pipes">) {
    this.records = records;
    this.pipes = pipes;
  }

  /** Creates the namespaces, and the ServiceAccount of the API, in the shared cluster or in the cluster of the test. */
  async create(own?: Cluster): Promise<this> {
    const cluster = own ?? (await sharedCluster());
    const namespaces = [this.records, this.pipes].map((name) => ({
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name },
    }));
    const admin = await PatientClient.of(cluster);
    if (own) await installCrds(own);
    await applyAll(admin, [...namespaces, ...shippedAccount("api", this.records)]);
    const kubeconfig = await serviceAccountKubeconfig(cluster, this.records, accountName("api"));
    this.#access = { cluster, admin, kubeconfig };
    return this;
  }

  get #created(): ClusterAccess {
    if (!this.#access)
      throw new Error(`The namespace ${this.records} does not exist yet: call create() first.`);
    return this.#access;
  }

  get cluster(): Cluster {
    return this.#created.cluster;
  }

  get admin(): KubeClient {
    return this.#created.admin;
  }

  /** Path of a kubeconfig for the ServiceAccount of the API. */
  get kubeconfig(): string {
    return this.#created.kubeconfig;
  }

  /** Creates a record in the namespace of the records. */
  async addRecord(record: Readonly<Record<string, unknown>> & { readonly kind: string }): Promise<void> {
    const plural = record.kind === "Secret" ? "secrets" : "configmaps";
    const path = collectionPath({ apiVersion: "v1", plural }, this.records);
    await this.admin.json({ method: "POST", path, body: record });
  }

  async replaceRecord(record: { readonly metadata: { readonly name: string } }): Promise<void> {
    const path = objectPath(CONFIG_MAPS, this.records, record.metadata.name);
    await this.admin.json({ method: "PUT", path, body: record });
  }

  async addKey(fields: KeyFields): Promise<KeyRecord> {
    const key = keyRecord(fields);
    await this.addRecord(key.record);
    return key;
  }

  async addOrganization(...given: Parameters<typeof organizationRecord>): Promise<string> {
    const record = organizationRecord(...given);
    await this.addRecord(record);
    return record.metadata.name.slice("organization-".length);
  }

  async addService(organizationId: string, id: string = randomUUID()): Promise<string> {
    await this.addRecord(serviceRecord({ id, organizationId, namespace: this.pipes }));
    return id;
  }

  /** Creates the tenant's organization, keys, service and PipeScaling. */
  async addTenant(tenant = newTenant()): Promise<Tenant> {
    const { organizationId, serviceId, admin, developer, withoutRole } = tenant;
    await this.addOrganization({ id: organizationId });
    for (const { record } of [admin, developer, withoutRole]) await this.addRecord(record);
    await this.addService(organizationId, serviceId);
    await this.addScaling(serviceId, {}, 2);
    return tenant;
  }

  /** Creates a PipeScaling in place of the controller. */
  async addScaling(name: string, spec: PipeScalingSpec, effectiveCores?: number): Promise<PipeScalingObject> {
    const body = { apiVersion: API_VERSION, kind: KIND, metadata: { name }, spec };
    const path = collectionPath(PIPE_SCALINGS, this.pipes);
    const made = await this.admin.json<PipeScalingObject>({ method: "POST", path, body });
    return effectiveCores === undefined ? made : await this.report(name, effectiveCores);
  }

  /** Writes the effective size to the status in place of the controller. */
  report(name: string, effectiveCores: number): Promise<PipeScalingObject> {
    const size = sizeOfCores(effectiveCores);
    const effective = {
      replicaCpuMillicores: size.cpuMillicores,
      replicaMemoryGb: size.memoryGib,
      summary: describeSize(size),
    };
    return this.admin.json<PipeScalingObject>({
      method: "PATCH",
      path: `${objectPath(PIPE_SCALINGS, this.pipes, name)}/status`,
      patchType: "application/merge-patch+json",
      body: { status: { effective } },
    });
  }

  scaling(name: string): Promise<PipeScalingObject> {
    return this.admin.json<PipeScalingObject>({ path: objectPath(PIPE_SCALINGS, this.pipes, name) });
  }

  async startApi(settings: Partial<ApiSettings> = {}): Promise<RunningApi> {
    const log: LogLine[] = [];
    const logger = createLogger("info", "api", { write: (line) => log.push(JSON.parse(line)) });
    const ending = new AbortController();
    const running = runApi(
      {
        ...toApiSettings(readOptions(apiSettings, {}, {})),
        kubeconfig: this.kubeconfig,
        namespace: this.records,
        port: 0,
        opsPort: 0,
        // Tests send more requests than users, with few keys and from one address.
        rateLimit: 10_000,
        failedLogins: 10_000,
        ...settings,
      },
      logger,
      ending.signal,
    );
    const { url, opsUrl } = await Promise.race([listening(log), running.then(endedEarly)]);
    const send = clientOf(url);
    return {
      url,
      opsUrl,
      send,
      log,
      async waitForKey(authorization) {
        const known = async () => (await send({ path: "/v1/none", authorization })).status === 404;
        await waitFor(known, { what: "the API to see the key" });
      },
      async waitForOrganization(authorization) {
        const isListed = async () =>
          (await send({ path: "/v1/organizations", authorization })).text.includes('"createdAt"');
        await waitFor(isListed, { what: "the API to see the organization" });
      },
      stop() {
        ending.abort();
        return running;
      },
    };
  }

  /** Starts the API and waits until its caches are filled. */
  async startReadyApi(settings: Partial<ApiSettings> = {}): Promise<RunningApi> {
    const api = await this.startApi(settings);
    const ready = async () => (await clientOfText(api.opsUrl)("/readyz")).status === 200;
    await waitFor(ready, { what: "the API to be ready" });
    return api;
  }

  async remove(): Promise<void> {
    if (!this.#access) return;
    await this.admin.close();
    const ofCluster = clusterRoleName("api", this.records);
    await kubectl(this.cluster, [
      "delete",
      "clusterrolebinding,clusterrole",
      ofCluster,
      "--ignore-not-found",
    ]);
    await kubectl(this.cluster, ["delete", "namespace", this.records, this.pipes, "--wait=false"]);
  }
}

async function listening(log: readonly LogLine[]): Promise<{ url: string; opsUrl: string }> {
  const line = await waitFor(() => log.find(({ msg }) => msg === "listening"), {
    what: "the API to start listening",
    intervalMs: 5,
  });
  return { url: String(line["url"]), opsUrl: String(line["opsUrl"]) };
}

function endedEarly(): never {
  throw new Error("the API ended before it started listening");
}

/** A client for the operations port, which responds with plain text. */
export function clientOfText(baseUrl: string) {
  return async (path: string) => {
    const response = await fetch(`${baseUrl}${path}`);
    return { status: response.status, text: await response.text() };
  };
}

/** Names of namespaces, which start with the name of the test file to show the origin of a leftover namespace. */
export function uniqueNamespaces(name: string) {
  const suffix = randomUUID().slice(0, 8);
  return { records: `${name}-records-${suffix}`, pipes: `${name}-pipes-${suffix}` };
}

/** @param own a separate cluster, for tests that damage it */
export function createApiEnvironment(name: string, own?: Cluster): Promise<ApiEnvironment> {
  return new ApiEnvironment(uniqueNamespaces(name)).create(own);
}
