import { resizeStages } from "./resize-stages.ts";
import { annotation, condition, doesNotExist, exists, isIn, isNotIn, label, stage } from "./stage.ts";

/**
 * The stages with which kwok simulates nodes and pods.
 *
 * A pod is Pending for its start time, then Running and Ready. A label and annotations change this for single pods.
 */

/** Label: with the value "true", a pod is not ready. */
export const NEVER_READY_LABEL = "test.pipes.clouddb.dev/never-ready";
/** Annotation: the time ("30s") until this pod is ready, instead of that of the cluster. */
export const START_AFTER_ANNOTATION = "test.pipes.clouddb.dev/start-after";
/** Annotation: the time that this pod takes to end after its deletion; 0 by default. */
export const STOP_AFTER_ANNOTATION = "test.pipes.clouddb.dev/stop-after";

export interface PodTiming {
  readonly podStartMs: number;
  /** Maximum of a random time that is added, with a uniform distribution. */
  readonly podStartJitterMs: number;
}

const ALIVE = doesNotExist(".metadata.deletionTimestamp");
const DELETED = exists(".metadata.deletionTimestamp");
const RUNNING = isIn(".status.phase", "Running");
const PENDING_OR_RUNNING = isIn(".status.phase", "Pending", "Running");
const NOT_HELD_BACK = isNotIn(label(NEVER_READY_LABEL), "true");
const READY = isIn(condition("Ready"), "True");
const NOT_READY = isNotIn(condition("Ready"), "True");

/** The Stage objects of a cluster, for the configuration of kwokctl. */
export function stages({ podStartMs, podStartJitterMs }: PodTiming) {
  const startAfter = { expressionFrom: annotation(START_AFTER_ANNOTATION) };
  return [
    stage("node-ready", "Node", [NOT_READY], {
      next: { statusTemplate: NODE_READY },
    }),
    stage("pod-ready", "Pod", [ALIVE, PENDING_OR_RUNNING, NOT_READY, NOT_HELD_BACK], {
      delay: {
        durationMilliseconds: podStartMs,
        durationFrom: startAfter,
        // In kwok, the jitter is the maximum of the whole delay.
        jitterDurationMilliseconds: podStartMs + podStartJitterMs,
        jitterDurationFrom: startAfter,
      },
      next: { statusTemplate: podStatus(true) },
    }),
    // Also for a pod that is already ready: it fails when it gets the label.
    stage(
      "pod-not-ready",
      "Pod",
      [
        ALIVE,
        PENDING_OR_RUNNING,
        isIn(label(NEVER_READY_LABEL), "true"),
        isNotIn(condition("ContainersReady"), "False"),
      ],
      { next: { statusTemplate: podStatus(false) } },
    ),
    stage("pod-complete", "Pod", [ALIVE, RUNNING, isIn(".metadata.ownerReferences.[].kind", "Job")], {
      next: { statusTemplate: POD_SUCCEEDED },
    }),
    ...resizeStages([RUNNING, ALIVE, READY, NOT_HELD_BACK]),
    stage("pod-delete", "Pod", [DELETED, doesNotExist(".metadata.finalizers")], {
      delay: {
        durationMilliseconds: 0,
        durationFrom: { expressionFrom: annotation(STOP_AFTER_ANNOTATION) },
      },
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

/**
 * Init containers complete immediately. A container that is not ready crashes repeatedly. A container that recovers
 * keeps its resources, and a resize that it missed is not observed, so that the stages of a resize act on it.
 */
function podStatus(ready: boolean): string {
  const status = ready ? "True" : "False";
  const state = ready
    ? "running: { startedAt: {{ $now | Quote }} }"
    : 'waiting: { reason: CrashLoopBackOff, message: "the test node cannot resize it" }';
  // Pods have a generation since Kubernetes 1.33.
  return `
{{ $now := Now }}
{{ $generation := or .metadata.generation 0 }}
phase: Running
observedGeneration: {{ or .status.observedGeneration $generation }}
startTime: {{ or .status.startTime $now | Quote }}
conditions:
- { type: Initialized, status: "True", observedGeneration: {{ $generation }}, lastTransitionTime: {{ $now | Quote }} }
- { type: ContainersReady, status: "${status}", observedGeneration: {{ $generation }}, lastTransitionTime: {{ $now | Quote }} }
- { type: Ready, status: "${status}", observedGeneration: {{ $generation }}, lastTransitionTime: {{ $now | Quote }} }
{{ range .spec.readinessGates }}
- { type: {{ .conditionType | Quote }}, status: "True", lastTransitionTime: {{ $now | Quote }} }
{{ end }}
{{ $reported := dict }}
{{ range .status.containerStatuses }}{{ $_ := set $reported .name . }}{{ end }}
containerStatuses:
{{ range .spec.containers }}
{{ $before := get $reported .name | default dict }}
{{ $restarts := add (or $before.restartCount 0) ${ready ? 0 : 3} }}
{{ $id := printf "%s/%s/%d" $.metadata.uid .name $restarts | sha256sum }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  containerID: {{ printf "kwok://%s" $id | Quote }}
  ready: ${ready}
  started: ${ready}
  restartCount: {{ $restarts }}
  allocatedResources: {{ or $before.allocatedResources .resources.requests dict | toJson }}
  resources: {{ or $before.resources ( pick .resources "requests" "limits" ) | toJson }}
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
