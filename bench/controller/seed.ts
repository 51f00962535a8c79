import { randomUUID } from "node:crypto";
import { RECORDS_NAMESPACE } from "../../deploy/chart/install.ts";
import { API_VERSION, CONTROLLER_FIELD_MANAGER, KIND, PIPE_SCALINGS } from "../../src/crd/names.ts";
import type { PipeScalingStatus } from "../../src/crd/pipe-scaling.ts";
import { CONFIG_MAPS, collectionPath, DEPLOYMENTS, objectPath } from "../../src/kube/paths.ts";
import { inParallel } from "../in-parallel.ts";
import { organizationRecord, pipeDeployment, serviceRecord } from "../objects.ts";
import { BASELINE_PIPES, type ControllerWorld, PIPES } from "./world.ts";

export const PIPES_PER_SERVICE = 3;
const CONCURRENCY = 32;

export interface SeedOptions {
  readonly services: number;
  /** Replicas of each pipe. Pipes without replicas are resized immediately, without pacing. */
  readonly replicas: number;
  /**
   * If true, every rollout completes immediately, because the status of the Deployments reports a later generation.
   * If false, only the first rollout is reported as complete, and later ones never complete.
   */
  readonly completeAtOnce?: boolean;
  /** If true, the cluster runs pods and reports the status of the Deployments. */
  readonly hasPods?: boolean;
}

export interface Seeded {
  /** Name of the organization's ConfigMap. */
  readonly organization: string;
  readonly serviceIds: readonly string[];
  /** Total number of pipes. */
  readonly pipes: number;
}

/**
 * Creates an organization of the tier basic whose services have three pipes each. The pipes have the default size of
 * the tier, and a change of the tier changes their size.
 */
export async function seedServices(world: ControllerWorld, options: SeedOptions): Promise<Seeded> {
  const organizationId = randomUUID();
  const organization = organizationRecord(organizationId, "basic");
  await create(world, CONFIG_MAPS, RECORDS_NAMESPACE, organization);
  const serviceIds = Array.from({ length: options.services }, () => randomUUID());
  await inParallel(CONCURRENCY, serviceIds, async (id) => {
    await create(world, CONFIG_MAPS, RECORDS_NAMESPACE, serviceRecord(id, organizationId, PIPES));
    await create(world, PIPE_SCALINGS, PIPES, unsizedScaling(id));
    await createPipes(world, PIPES, id, options);
  });
  return {
    organization: organization.metadata.name,
    serviceIds,
    pipes: serviceIds.length * PIPES_PER_SERVICE,
  };
}

/** Creates the same number of Deployments for the baseline. The controller does not manage them. */
export async function seedBaseline(world: ControllerWorld, options: SeedOptions): Promise<void> {
  const ids = Array.from({ length: options.services }, () => randomUUID());
  await inParallel(CONCURRENCY, ids, async (name) => {
    await create(world, PIPE_SCALINGS, BASELINE_PIPES, unsizedScaling(name));
    await patchStatus(world, objectPath(PIPE_SCALINGS, BASELINE_PIPES, name), SCALED);
    await createPipes(world, BASELINE_PIPES, name, options);
  });
}

function unsizedScaling(name: string): object {
  return { apiVersion: API_VERSION, kind: KIND, metadata: { name }, spec: {} };
}

/** Changes the tier of the organization, and so the size of each service without a requested size. */
export async function setTier(
  { admin }: ControllerWorld,
  { organization }: Seeded,
  tier: string,
): Promise<void> {
  await admin.json({
    method: "PATCH",
    path: objectPath(CONFIG_MAPS, RECORDS_NAMESPACE, organization),
    patchType: "application/merge-patch+json",
    body: { data: { tier } },
  });
}

async function createPipes(
  world: ControllerWorld,
  namespace: string,
  serviceId: string,
  { replicas, completeAtOnce = false, hasPods = false }: SeedOptions,
): Promise<void> {
  for (let number = 1; number <= PIPES_PER_SERVICE; number += 1) {
    const name = `pipe-${serviceId}-${number}`;
    const pipe = pipeDeployment(name, namespace, serviceId, { replicas, hasLabeledPods: hasPods });
    await create(world, DEPLOYMENTS, namespace, pipe);
    if (hasPods) continue;
    const seenGeneration = completeAtOnce ? Number.MAX_SAFE_INTEGER : 1;
    await patchStatus(
      world,
      objectPath(DEPLOYMENTS, namespace, name),
      statusOf(name, replicas, seenGeneration),
    );
  }
}

/** The status that the Deployment controller reports after a rollout. */
function statusOf(name: string, replicas: number, observedGeneration: number) {
  const at = new Date().toISOString().replace(/\.\d+/, "");
  const since = { lastUpdateTime: at, lastTransitionTime: at };
  const counts = {
    replicas,
    updatedReplicas: replicas,
    readyReplicas: replicas,
    availableReplicas: replicas,
  };
  return {
    observedGeneration,
    ...counts,
    conditions: [
      {
        type: "Available",
        status: "True",
        reason: "MinimumReplicasAvailable",
        message: "Deployment has minimum availability.",
        ...since,
      },
      {
        type: "Progressing",
        status: "True",
        reason: "NewReplicaSetAvailable",
        message: `ReplicaSet "${name}-5d4f8c7b9" has successfully progressed.`,
        ...since,
      },
    ],
  };
}

const AT = "2026-01-01T00:00:00Z";

/** The status that the controller reports for a service whose pipes have the size of the tier basic. */
const SCALED: PipeScalingStatus = {
  observedGeneration: 1,
  conditions: [
    {
      type: "Ready",
      status: "True",
      observedGeneration: 1,
      lastTransitionTime: AT,
      reason: "Scaled",
      message: "All 3 pipes run 1 cpu / 4 Gi.",
    },
  ],
  desired: {
    replicaCpuMillicores: 1000,
    replicaMemoryGb: 4,
    summary: "1 cpu / 4 Gi",
    source: "TierDefault",
  },
  effective: { replicaCpuMillicores: 1000, replicaMemoryGb: 4, summary: "1 cpu / 4 Gi" },
  pipes: { total: 3, updated: 3, summary: "3/3" },
  replicas: 0,
  computeUnits: 0,
  tier: "basic",
  propagation: { startedAt: AT, completedAt: AT },
  history: [
    {
      replicaCpuMillicores: 1000,
      replicaMemoryGb: 4,
      summary: "1 cpu / 4 Gi",
      source: "TierDefault",
      result: "Scaled",
      startedAt: AT,
      completedAt: AT,
    },
  ],
};

async function patchStatus({ admin }: ControllerWorld, path: string, status: object): Promise<void> {
  await admin.json({
    method: "PATCH",
    path: `${path}/status`,
    patchType: "application/merge-patch+json",
    body: { status },
  });
}

function create(
  { admin }: ControllerWorld,
  resource: Parameters<typeof collectionPath>[0],
  namespace: string,
  body: object,
): Promise<unknown> {
  // The controller already owns the size of new pipes, as after a first reconciliation, so it has nothing to adopt.
  const query = resource === DEPLOYMENTS ? { fieldManager: CONTROLLER_FIELD_MANAGER } : {};
  return admin.json({ method: "POST", path: collectionPath(resource, namespace), query, body });
}
