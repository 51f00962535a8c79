import {
  DATABASE_TYPE,
  LAST_ROLLOUT_ANNOTATION,
  SERVICE_LABEL,
  TYPE_LABEL,
} from "../../../src/controller/names.ts";
import type { Kinds } from "./history.ts";

export const SERVICE = "service-1";
export const NAMESPACE = "pipes";

export const SIZE_FIELDS = {
  "f:spec": {
    "f:template": {
      "f:spec": {
        "f:containers": {
          'k:{"name":"pipe"}': {
            "f:resources": {
              "f:limits": { "f:memory": {} },
              "f:requests": { "f:cpu": {}, "f:memory": {} },
            },
          },
        },
      },
    },
  },
};
export const ANNOTATION_FIELDS = {
  "f:metadata": { "f:annotations": { ".": {}, [`f:${LAST_ROLLOUT_ANNOTATION}`]: {} } },
};
/** The controller added the first annotation, so it still owns the annotations map without an entry. */
export const ANNOTATIONS_MAP = { "f:metadata": { "f:annotations": { ".": {} } } };

export const PAUSED_FIELD = { "f:spec": { "f:paused": {} } };

/** Size fields in the spec of a pod, or in the pod template of a ReplicaSet. */
export const AMOUNTS = {
  "f:containers": {
    'k:{"name":"pipe"}': {
      "f:resources": { "f:limits": { "f:memory": {} }, "f:requests": { "f:cpu": {}, "f:memory": {} } },
    },
  },
};

export function labelsOf(serviceId: string, type = DATABASE_TYPE): Record<string, string> {
  return { [SERVICE_LABEL]: serviceId, [TYPE_LABEL]: type };
}

export function specOf(cores: number): Kinds["Deployment"]["spec"] {
  const amounts = { cpu: `${cores}`, memory: `${cores * 4}Gi` };
  const resources = { requests: amounts, limits: { memory: amounts.memory } };
  return { replicas: 1, template: { spec: { containers: [{ name: "pipe", resources }] } } };
}

export function runningWith(
  cores: number,
  observedGeneration: number,
  restartCount = 0,
): NonNullable<Kinds["Pod"]["status"]> {
  const { resources } = specOf(cores).template.spec.containers[0] ?? {};
  const containerID = `runtime://${restartCount}`;
  const state = { running: {} };
  const own = { name: "pipe", state, restartCount, containerID, resources };
  return {
    observedGeneration,
    conditions: [{ type: "Ready", status: "True" }],
    containerStatuses: [{ ...own, allocatedResources: resources?.requests ?? {} }],
  };
}

export function found<T>(objects: ReadonlyMap<string, T>, name: string): T {
  const object = objects.get(name);
  if (!object) throw new Error(`no ${name}`);
  return object;
}
