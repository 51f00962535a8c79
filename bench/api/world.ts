import { randomUUID } from "node:crypto";
import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { accounts, install, RECORDS_NAMESPACE } from "../../deploy/chart/install.ts";
import {
  type PipeScalingResource,
  type PipeScalingView,
  toPipeScalingView,
} from "../../src/api/cluster/views.ts";
import { API_VERSION, KIND, PIPE_SCALINGS } from "../../src/crd/names.ts";
import { describeSize, sizeOfCores } from "../../src/domain/size.ts";
import { KubeClient } from "../../src/kube/client.ts";
import { connect } from "../../src/kube/connection.ts";
import { CONFIG_MAPS, collectionPath, objectPath, SECRETS } from "../../src/kube/paths.ts";
import { apiKey, organizationRecord, serviceRecord } from "../objects.ts";

/** Namespace of the pipes. */
export const PIPES = "bench-pipes";

/** The rate limit has its maximum of 10,000 requests per second; this many keys share the load, so none is limited. */
const KEYS = 16;

export interface BenchService {
  readonly scaling: PipeScalingView;
  /** Path of the service's size in the API. */
  readonly path: string;
}

/** A cluster with the objects that the API reads: an organization with its keys and two services with a size. */
export interface ApiWorld {
  readonly cluster: Cluster;
  /** Path of a kubeconfig for the ServiceAccount of the API. */
  readonly kubeconfig: string;
  readonly authorizations: readonly string[];
  readonly services: readonly [BenchService, BenchService];
  /** Paths of GET requests that the API serves from its caches. */
  readonly paths: readonly string[];
}

/** The cluster is removed when this process ends. It has no pipes, because the API needs none. */
export async function createApiWorld(): Promise<ApiWorld> {
  const cluster = await startCluster({ controllerManager: false, nodes: 0 });
  await install(cluster, [PIPES]);
  const { api: kubeconfig } = await accounts(cluster);
  const admin = new KubeClient(await connect(cluster.kubeconfig));
  try {
    return { cluster, kubeconfig, ...(await seed(admin)) };
  } finally {
    await admin.close();
  }
}

/** Adds a record with 100 KB of invalid YAML. A parser that describes every error would never finish it. */
export async function addHostileRecord({ cluster }: Pick<ApiWorld, "cluster">): Promise<void> {
  const admin = new KubeClient(await connect(cluster.kubeconfig));
  try {
    const record = organizationRecord(randomUUID(), "scale");
    const body = { ...record, data: { ...record.data, byocConfig: "]".repeat(100_000) } };
    await admin.json({ method: "POST", path: collectionPath(CONFIG_MAPS, RECORDS_NAMESPACE), body });
  } finally {
    await admin.close();
  }
}

async function seed(admin: KubeClient) {
  const organizationId = randomUUID();
  const add = (body: object, of: typeof CONFIG_MAPS) =>
    admin.json({ method: "POST", path: collectionPath(of, RECORDS_NAMESPACE), body });
  await add(organizationRecord(organizationId, "scale"), CONFIG_MAPS);
  const keys = Array.from({ length: KEYS }, () => apiKey(organizationId));
  for (const { record } of keys) await add(record, SECRETS);

  const ofOrganization = `/v1/organizations/${organizationId}`;
  const addService = async (): Promise<BenchService> => {
    const id = randomUUID();
    await add(serviceRecord(id, organizationId, PIPES), CONFIG_MAPS);
    return { scaling: await addScaling(admin, id), path: `${ofOrganization}/services/${id}/pipesCdcScaling` };
  };
  const services = [await addService(), await addService()] as const;
  const [{ path }] = services;
  return {
    authorizations: keys.map(({ authorization }) => authorization),
    services,
    paths: [
      path,
      "/v1/organizations",
      `${ofOrganization}/keys`,
      path.replace("pipesCdcScaling", "backupConfiguration"),
    ],
  };
}

/** Creates a PipeScaling as the controller does, with an effective size of one core. */
async function addScaling(admin: KubeClient, name: string): Promise<PipeScalingView> {
  const size = sizeOfCores(1);
  const spec = { replicaCpuMillicores: size.cpuMillicores, replicaMemoryGb: size.memoryGib };
  const made = await admin.json<PipeScalingResource>({
    method: "POST",
    path: collectionPath(PIPE_SCALINGS, PIPES),
    body: { apiVersion: API_VERSION, kind: KIND, metadata: { name }, spec },
  });
  await admin.json({
    method: "PATCH",
    path: `${objectPath(PIPE_SCALINGS, PIPES, name)}/status`,
    patchType: "application/merge-patch+json",
    body: { status: { effective: { ...spec, summary: describeSize(size) } } },
  });
  return toPipeScalingView(made);
}
