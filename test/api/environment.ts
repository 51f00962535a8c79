import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { serviceAccountKubeconfig } from "@pipe-scaling/local-cluster/service-account";
import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { parse } from "yaml";
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

/** The API in this process, with the permissions of the chart. */
export interface RunningApi {
  readonly url: string;
  readonly opsUrl: string;
  readonly send: Client;
  readonly log: readonly LogLine[];
  /** Resolves when the API has received the key from its watch. */
  waitForKey(authorization: string): Promise<void>;
  stop(): Promise<void>;
}

/** The namespaces of one test file in the shared cluster. */
export class TestEnvironment {
  readonly cluster: Cluster;
  readonly admin: KubeClient;
  readonly records: string;
  readonly pipes: string;
  /** Path of a kubeconfig for the ServiceAccount of the API. */
  readonly kubeconfig: string;

  constructor(
    cluster: Cluster,
    admin: KubeClient,
    names: { records: string; pipes: string; kubeconfig: string },
  ) {
    this.cluster = cluster;
    this.admin = admin;
    this.records = names.records;
    this.pipes = names.pipes;
    this.kubeconfig = names.kubeconfig;
  }

  /** Creates a record in the namespace of the records. */
  async addRecord(record: { readonly kind: string }): Promise<void> {
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

  async addService(organizationId: string): Promise<string> {
    const record = serviceRecord({ organizationId, namespace: this.pipes });
    await this.addRecord(record);
    return record.metadata.name.slice("service-".length);
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
    await this.admin.close();
    const ofCluster = clusterRoleName("api", this.records);
    await kubectl(this.cluster, ["delete", "clusterrolebinding,clusterrole", ofCluster]);
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

/**
 * @param name name of the test file, so that a leftover namespace shows its origin
 * @param own a separate cluster, for tests that damage it
 */
export async function createTestEnvironment(name: string, own?: Cluster): Promise<TestEnvironment> {
  const cluster = own ?? (await sharedCluster());
  const suffix = randomUUID().slice(0, 8);
  const records = `${name}-records-${suffix}`;
  const pipes = `${name}-pipes-${suffix}`;
  const namespaces = [records, pipes].map((of) => ({
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: of },
  }));
  const client = await PatientClient.of(cluster);
  await applyAll(client, [readCrd(), ...namespaces, ...shippedAccount("api", records)]);
  await kubectl(cluster, ["wait", "--for=condition=Established", `crd/${PLURAL}.pipes.clouddb.dev`]);
  const kubeconfig = await serviceAccountKubeconfig(cluster, records, accountName("api"));
  return new TestEnvironment(cluster, client, {
    records,
    pipes,
    kubeconfig,
  });
}

function readCrd(): object {
  return parse(
    readFileSync(new URL("../../crds/pipes.clouddb.dev_pipescalings.yaml", import.meta.url), "utf8"),
  );
}
