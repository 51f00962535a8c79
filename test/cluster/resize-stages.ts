import { annotation, type Expression, isIn, stage } from "./stage.ts";

/**
 * Annotation: how the kubelet responds to a resize of this pod, instead of doing it. Change or remove it, and the kubelet
 * acts on the resize that is waiting.
 */
export const RESIZE_OUTCOME_ANNOTATION = "test.pipes.clouddb.dev/resize-outcome";
/** Annotation: a duration ("30s") for which a resize of this pod is in progress, instead of 100 ms. */
export const RESIZE_AFTER_ANNOTATION = "test.pipes.clouddb.dev/resize-after";

/**
 * The values of RESIZE_OUTCOME_ANNOTATION. All but the last are the reasons that a kubelet reports; with the last
 * the kubelet does not notice the resize.
 */
export const RESIZE_OUTCOMES = ["Deferred", "Infeasible", "Error", "NotObserved"] as const;
export type ResizeOutcome = (typeof RESIZE_OUTCOMES)[number];

/** As long as a kubelet takes for most pods. */
const RESIZE_MS = 100;

/**
 * Tells the pods that STEP is about from all others, which would otherwise take most of kwok's time: those whose
 * last change was not observed, or that have a condition about a resize.
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
    // The pod has the requested size already, or another field of it was changed.
    stage("pod-resize-settle", "Pod", inStep("settle"), next(done)),
  ];
}

const annotationValue = (name: string) => `{{ index .metadata.annotations "${name}" | Quote }}`;

const absent = (type: string) => `
- { type: ${type}, $patch: delete }`;

/** As with a kubelet, a condition that stays keeps its time, even if it is about another resize now. */
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

/** A patch replaces the list of containers as a whole, so each one is rendered completely. */
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
