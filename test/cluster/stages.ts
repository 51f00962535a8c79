/**
 * The stages by which kwok simulates the kubelets of nodes and pods.
 *
 * A pod is Pending until its start time is over, then Running and Ready. A label
 * and annotations change that for a single pod.
 */

/** Label: a pod with the value "true" is never ready, or stops being ready. */
export const NEVER_READY_LABEL = "test.pipes.clouddb.dev/never-ready";
/** Annotation: a duration ("30s") that this pod takes to become ready, instead of the cluster's. */
export const START_AFTER_ANNOTATION = "test.pipes.clouddb.dev/start-after";
/** Annotation: a duration that this pod takes to end once it is deleted, instead of none. */
export const STOP_AFTER_ANNOTATION = "test.pipes.clouddb.dev/stop-after";

export interface PodTiming {
  readonly podStartMs: number;
  /** Up to this much more, at random and evenly. */
  readonly podStartJitterMs: number;
}

type Expression = { key: string; operator: string; values?: string[] };

const label = (name: string) => `.metadata.labels["${name}"]`;
const annotation = (name: string) => ({ expressionFrom: `.metadata.annotations["${name}"]` });
const condition = (type: string) => `.status.conditions.[] | select( .type == "${type}" ) | .status`;
const isIn = (key: string, ...values: string[]): Expression => ({ key, operator: "In", values });
const isNotIn = (key: string, ...values: string[]): Expression => ({ key, operator: "NotIn", values });

const ALIVE: Expression = { key: ".metadata.deletionTimestamp", operator: "DoesNotExist" };
const DELETED: Expression = { key: ".metadata.deletionTimestamp", operator: "Exists" };

function stage(name: string, kind: string, when: Expression[], spec: Record<string, unknown>) {
  return {
    apiVersion: "kwok.x-k8s.io/v1alpha1",
    kind: "Stage",
    metadata: { name },
    spec: { resourceRef: { apiGroup: "v1", kind }, selector: { matchExpressions: when }, ...spec },
  };
}

/** The Stage objects of a cluster, for kwokctl's configuration. */
export function stages({ podStartMs, podStartJitterMs }: PodTiming) {
  const startAfter = annotation(START_AFTER_ANNOTATION);
  return [
    stage("node-ready", "Node", [isNotIn(condition("Ready"), "True")], {
      next: { statusTemplate: NODE_READY },
    }),
    stage(
      "pod-ready",
      "Pod",
      [
        ALIVE,
        isIn(".status.phase", "Pending", "Running"),
        isNotIn(condition("Ready"), "True"),
        isNotIn(label(NEVER_READY_LABEL), "true"),
      ],
      {
        delay: {
          durationMilliseconds: podStartMs,
          durationFrom: startAfter,
          // kwok's jitter is the upper bound, not what is added.
          jitterDurationMilliseconds: podStartMs + podStartJitterMs,
          jitterDurationFrom: startAfter,
        },
        next: { statusTemplate: podStatus(true) },
      },
    ),
    // Also for a pod that is ready already: put the label on it, and it fails.
    stage(
      "pod-not-ready",
      "Pod",
      [
        ALIVE,
        isIn(".status.phase", "Pending", "Running"),
        isIn(label(NEVER_READY_LABEL), "true"),
        isNotIn(condition("ContainersReady"), "False"),
      ],
      { next: { statusTemplate: podStatus(false) } },
    ),
    stage(
      "pod-complete",
      "Pod",
      [ALIVE, isIn(".status.phase", "Running"), isIn(".metadata.ownerReferences.[].kind", "Job")],
      { next: { statusTemplate: POD_SUCCEEDED } },
    ),
    stage("pod-delete", "Pod", [DELETED, { key: ".metadata.finalizers", operator: "DoesNotExist" }], {
      delay: { durationMilliseconds: 0, durationFrom: annotation(STOP_AFTER_ANNOTATION) },
      next: { delete: true },
    }),
  ];
}

const NODE_READY = `
{{ $now := Now }}
conditions:
{{ range NodeConditions }}
- type: {{ .type | Quote }}
  status: {{ .status | Quote }}
  reason: {{ .reason | Quote }}
  message: {{ .message | Quote }}
  lastHeartbeatTime: {{ $now | Quote }}
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
nodeInfo:
  architecture: ""
  bootID: ""
  containerRuntimeVersion: ""
  kernelVersion: ""
  kubeProxyVersion: ""
  kubeletVersion: {{ printf "kwok-%s" Version | Quote }}
  machineID: ""
  operatingSystem: linux
  osImage: ""
  systemUUID: ""
phase: Running
`;

/** Init containers are taken as done at once; a container that is not ready crashes again and again. */
function podStatus(ready: boolean): string {
  const status = ready ? "True" : "False";
  const state = ready
    ? "running: { startedAt: {{ $now | Quote }} }"
    : 'waiting: { reason: CrashLoopBackOff, message: "held back by a test" }';
  return `
{{ $now := Now }}
phase: Running
startTime: {{ or .status.startTime $now | Quote }}
conditions:
- { type: Initialized, status: "True", lastTransitionTime: {{ $now | Quote }} }
- { type: ContainersReady, status: "${status}", lastTransitionTime: {{ $now | Quote }} }
- { type: Ready, status: "${status}", lastTransitionTime: {{ $now | Quote }} }
{{ range .spec.readinessGates }}
- { type: {{ .conditionType | Quote }}, status: "True", lastTransitionTime: {{ $now | Quote }} }
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: ${ready}
  started: ${ready}
  restartCount: ${ready ? 0 : 3}
  state:
    ${state}
{{ end }}
initContainerStatuses:
{{ range .spec.initContainers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: true
  started: false
  restartCount: 0
  state:
    terminated: { exitCode: 0, reason: Completed, startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }} }
{{ end }}
hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
podIP: {{ PodIPWith .spec.nodeName ( or .spec.hostNetwork false ) ( or .metadata.uid "" ) ( or .metadata.name "" ) ( or .metadata.namespace "" ) | Quote }}
`;
}

const POD_SUCCEEDED = `
{{ $now := Now }}
phase: Succeeded
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: false
  started: false
  restartCount: 0
  state:
    terminated: { exitCode: 0, reason: Completed, startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }} }
{{ end }}
`;
