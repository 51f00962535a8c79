import { annotation, type Expression, isIn, stage } from "./stage.ts";

/**
 * Annotation: the outcome of resizes of this pod, instead of success. If it is changed or removed, the kubelet
 * continues the pending resize.
 */
export const RESIZE_OUTCOME_ANNOTATION = "test.pipes.clouddb.dev/resize-outcome";
/** Annotation: the time ("30s") that a resize of this pod takes; 100 ms by default. */
export const RESIZE_AFTER_ANNOTATION = "test.pipes.clouddb.dev/resize-after";

/**
 * The values of RESIZE_OUTCOME_ANNOTATION. All but the last are reasons that a kubelet reports; with the last, the
 * kubelet does not notice the resize.
 */
export const RESIZE_OUTCOMES = ["Deferred", "Infeasible", "Error", "NotObserved"] as const;
export type ResizeOutcome = (typeof RESIZE_OUTCOMES)[number];

/** A real kubelet takes about this time for most pods. */
const RESIZE_MS = 100;

/**
 * Selects the pods that need STEP: those whose last change was not observed, or that have a condition about a resize.
 * Evaluating STEP for all pods would take most of kwok's time.
 */
const UNSETTLED = `
(.status.observedGeneration != .metadata.generation)
  or any(.status.conditions[]; .type | startswith("PodResize"))`;

/** Query for the kubelet's next step with the resources of a running pod. */
const STEP = `
(.status.observedGeneration == .metadata.generation) as $observed |
(${annotation(RESIZE_OUTCOME_ANNOTATION)} // "Done") as $outcome |
(first(.status.conditions[] | select(.type | startswith("PodResize"))) // null) as $resize |
([.spec.containers[].resources | [.requests, .limits, .requests]]
  == [.status.containerStatuses[] | [.resources.requests, .resources.limits, .allocatedResources]]) as $equal |
if $outcome == "NotObserved" then "wait"
elif $equal then (if $observed and $resize == null then "wait" else "settle" end)
elif $outcome == "Deferred" or $outcome == "Infeasible" then
  (if $observed and $resize.reason == $outcome then "wait" else "postpone" end)
elif ($observed | not) or $resize.type != "PodResizeInProgress" then "start"
elif $outcome != "Error" then "finish"
elif $resize.reason != "Error" then "fail"
else "wait" end`;

const IN_PROGRESS = "PodResizeInProgress";
const PENDING = "PodResizePending";
const NONE = { allocated: false, applied: false };
const ALLOCATED = { allocated: true, applied: false };
const ALL = { allocated: true, applied: true };

/** The stages of a pod that is resized in place, among those that `when` selects. */
export function resizeStages(when: readonly Expression[]) {
  const inStep = (step: string) => [isIn(UNSETTLED, "true"), ...when, isIn(STEP, step)];
  const delay = {
    durationMilliseconds: RESIZE_MS,
    durationFrom: { expressionFrom: annotation(RESIZE_AFTER_ANNOTATION) },
  };
  const done = resizeStatus(ALL, absent(IN_PROGRESS) + absent(PENDING));
  const postponed = present(PENDING, annotationValue(RESIZE_OUTCOME_ANNOTATION)) + absent(IN_PROGRESS);
  const started = present(IN_PROGRESS) + absent(PENDING);
  const next = (statusTemplate: string) => ({ next: { statusTemplate } });
  return [
    stage("pod-resize-postpone", "Pod", inStep("postpone"), next(resizeStatus(NONE, postponed))),
    stage("pod-resize-start", "Pod", inStep("start"), next(resizeStatus(ALLOCATED, started))),
    stage("pod-resize-finish", "Pod", inStep("finish"), { delay, ...next(done) }),
    stage("pod-resize-fail", "Pod", inStep("fail"), {
      delay,
      ...next(resizeStatus(ALLOCATED, present(IN_PROGRESS, '"Error"'))),
    }),
    // The pod already has the requested size, or another field was changed.
    stage("pod-resize-settle", "Pod", inStep("settle"), next(done)),
  ];
}

const annotationValue = (name: string) => `{{ index .metadata.annotations "${name}" | Quote }}`;

const absent = (type: string) => `
- { type: ${type}, $patch: delete }`;

/** A condition keeps its time while it stays, even if it is about another resize, as with a real kubelet. */
const present = (type: string, reason?: string) => `
{{ $at := Now }}
{{ range .status.conditions }}{{ if eq .type "${type}" }}{{ $at = .lastTransitionTime }}{{ end }}{{ end }}
- type: ${type}
  status: "True"
  observedGeneration: {{ .metadata.generation }}
  lastProbeTime: null
  lastTransitionTime: {{ $at | Quote }}
  reason: ${reason ?? '""'}
  message: ${reason ? '"the test node cannot resize it"' : '""'}`;

/** A patch replaces the whole list of containers, so each one is rendered completely. */
function resizeStatus(takes: { readonly allocated: boolean; readonly applied: boolean }, conditions: string) {
  return `
{{ $spec := dict }}
{{ range .spec.containers }}{{ $_ := set $spec .name (pick .resources "requests" "limits") }}{{ end }}
observedGeneration: {{ .metadata.generation }}
conditions:${["Initialized", "ContainersReady", "Ready"].map(observed).join("")}${conditions}
containerStatuses:
{{ range .status.containerStatuses }}
{{ $new := get $spec .name }}
${takes.allocated ? '{{ $_ := set . "allocatedResources" $new.requests }}' : ""}
${takes.applied ? '{{ $_ := set . "resources" $new }}' : ""}
- {{ . | toJson }}
{{ end }}
`;
}

const observed = (type: string) => `
- { type: ${type}, observedGeneration: {{ .metadata.generation }} }`;
