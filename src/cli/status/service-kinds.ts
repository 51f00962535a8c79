import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../controller/names.ts";
import { toDeploymentView } from "../../controller/observe/deployment-view.ts";
import { PIPE_SCALINGS } from "../../crd/names.ts";
import type { Deployment } from "../../kube/objects.ts";
import { DEPLOYMENTS } from "../../kube/paths.ts";
import type { Service } from "../../records/service.ts";
import type { Selection } from "./list.ts";
import type { WatchedPipe } from "./pipe-lines.ts";

export function scalingsOf({ id, namespace }: Service): Selection {
  return { resource: PIPE_SCALINGS, namespace, fieldSelector: `metadata.name=${id}` };
}

export function pipesOf({ id, namespace }: Service): Selection {
  const labelSelector = `${TYPE_LABEL}=${DATABASE_TYPE},${SERVICE_LABEL}=${id}`;
  return { resource: DEPLOYMENTS, namespace, labelSelector };
}

export function watchedPipeOf(deployment: Deployment): WatchedPipe {
  const { replicas = 0, updatedReplicas = 0, availableReplicas = 0 } = deployment.status ?? {};
  const pipe = toDeploymentView(deployment);
  // Which of those that are available are new is not told: as few as can be.
  const sure = Math.max(0, availableReplicas - (replicas - updatedReplicas));
  return { ...pipe, updatedReplicas: pipe.rollout.isSeen ? sure : 0 };
}
