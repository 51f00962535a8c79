/** One reason why a pipe is not resized in place. All texts about it, and the alert, are derived from this. */
interface FallbackReasonEntry {
  /** For customers: the API returns it instead of messages of the cluster, which may name other tenants. */
  readonly sentence: string;
  /** For operators, as Markdown. Links are relative to a folder in docs. */
  readonly meaning: string;
  readonly remedy: string;
  /** True if the setup of the pipe, an old cluster or a missing request explains the reason: no alert counts it. */
  readonly isExpected: boolean;
}

const NOT_SET_UP = "Resizes without a restart are not set up for this pipe: ask the operator of this API.";

const READS_ONCE = {
  sentence: "The program in the pipe reads its size only when it starts.",
  meaning:
    "a program [reads its size once](../explanation/in-place.md#programs-that-read-their-size-once), so it would not use the size before it starts again",
  remedy: "none, unless a variable is not used: then remove it",
  isExpected: true,
} as const;

const NOT_IN_TIME = "The machine of the pipe did not apply this size in time.";

/** Reasons why a pipe is not resized in place. They are also label values of a metric. */
export const FALLBACK_REASON_TABLE = {
  ContainerNotNamed: {
    sentence: NOT_SET_UP,
    meaning:
      "the annotation `pipes.clouddb.dev/container` of the pod template is missing or names another container; also if only the pods have several containers, because a service mesh added one",
    remedy: "add or correct it ([command](../explanation/in-place.md#injected-containers))",
    isExpected: true,
  },
  ContainerNotRunning: {
    sentence: "The pipe was not running when it was to be resized.",
    meaning: "a container of a pod is not running",
    remedy: "fix the pod",
    isExpected: false,
  },
  ContainerRestarts: {
    sentence: "The pipe is configured to restart when its size changes.",
    meaning: "the `resizePolicy` restarts the container",
    remedy:
      "none: it says that the program [reads its size once](../explanation/in-place.md#programs-that-read-their-size-once)",
    isExpected: true,
  },
  Deferred: {
    sentence: "The machine of the pipe had no room for this size, so the pipe moves to another one.",
    meaning:
      "the size did not fit on the node for 60 s; a pipe that stops its old pods first was rolled out only when another node had room",
    remedy: "add nodes, or leave more room on the nodes of pipes",
    isExpected: false,
  },
  Forbidden: {
    sentence: NOT_SET_UP,
    meaning:
      "the controller has no permission to watch or resize pods, to change ReplicaSets, or to label the pods of a StatefulSet; the message is from the API server",
    remedy: "install the chart with `rbac.inPlaceResize=true`, its default",
    isExpected: false,
  },
  Infeasible: {
    sentence: "The machine of the pipe cannot apply this size without a restart.",
    meaning:
      "the size can never fit on the node, because it is too small, or for example because of the CPU Manager policy `static`; pods are replaced only if another node is large enough, and has room if the rollout stops old pods first; otherwise the pipe fails with `NoNodeLargeEnough` or `NoNodeHasRoom`",
    remedy: "run pipes on larger nodes, without a static CPU or memory manager, and without swap",
    isExpected: false,
  },
  NotSupported: {
    sentence: "The cluster cannot apply a size without a restart.",
    meaning:
      "the API server cannot resize pods, the node does not report the resources of containers or the observed generation of pods, something removes `managedFields` from the Deployment, or the annotation `pipes.clouddb.dev/last-rollout` from the StatefulSet, or its pod template lacks a request or the memory limit",
    remedy: "use Kubernetes 1.35 or newer on every node; keep `managedFields` and the annotation",
    isExpected: true,
  },
  NotSettled: {
    sentence: "The pipe was changing for another reason.",
    meaning:
      "the pipe has no replicas, another rollout did not complete within 2 minutes (plus `minReadySeconds`) of its last progress, a rollout to another size had stopped its old pods, the owner paused the Deployment before the resize, or somebody changed the pod template or the annotation during the commit",
    remedy: "resume a Deployment that you paused; otherwise wait for the rollout of the owner",
    isExpected: false,
  },
  PodsNotLabeled: {
    sentence: NOT_SET_UP,
    meaning:
      "the pod template does not have the labels of the pipe, or somebody removed the label `pipes.clouddb.dev/type` from a pod",
    remedy: "add them",
    isExpected: true,
  },
  Refused: {
    sentence: "This size is not allowed without a restart of the pipe.",
    meaning: "an admission policy or a webhook denies the resize of the pods or the commit",
    remedy: "read the message, and exempt pipes from the policy or the webhook",
    isExpected: false,
  },
  ResizeError: {
    sentence: NOT_IN_TIME,
    meaning:
      "the kubelet reported an error, and did not finish within 2 minutes; the message is the one of the kubelet",
    remedy:
      "read the message, and check the kubelet of the node; a memory limit below the usage cannot be applied",
    isExpected: false,
  },
  ResizeTimeout: {
    sentence: NOT_IN_TIME,
    meaning:
      "the kubelet did not finish within 2 minutes, or writes to `pods/resize` failed for 2 minutes, for example because of a webhook",
    remedy: "read the message, and check the kubelet of the node and the webhooks on `pods/resize`",
    isExpected: false,
  },
  Restarted: {
    sentence: "The pipe restarted while it was being resized.",
    meaning: "a container restarted during the resize, for example because of the smaller memory limit",
    remedy: "find the cause: `kubectl describe pod`",
    isExpected: false,
  },
  Reverted: {
    sentence: "Another program also sets the size of this pipe.",
    meaning:
      "something, probably an admission webhook, changes the resources in each resize of a pod before it is stored",
    remedy: "read the message, and exempt pipes from the webhook",
    isExpected: false,
  },
  SizeFromEnvironment: READS_ONCE,
  SizeFromPercentage: READS_ONCE,
  SizeNotRequested: {
    sentence: "No size was requested for this pipe, so it is not restarted.",
    meaning:
      "the pipe ran before it got its labels, no size was requested since then, and another size would need a restart",
    remedy: "[request a size](../how-to/take-over-pipes.md#know-the-size)",
    isExpected: true,
  },
  TemplateChanged: {
    sentence: NOT_SET_UP,
    meaning: "a webhook or policy changes the pod template at each write",
    remedy: "exempt pipes from it",
    isExpected: false,
  },
} as const satisfies Readonly<Record<string, FallbackReasonEntry>>;

export type FallbackReason = keyof typeof FALLBACK_REASON_TABLE;

export const FALLBACK_REASONS = Object.keys(FALLBACK_REASON_TABLE).filter(isFallbackReason);

function isFallbackReason(text: string): text is FallbackReason {
  return Object.hasOwn(FALLBACK_REASON_TABLE, text);
}
