import { type PodTemplate, podTemplateProblem } from "../../controller/in-place/pod-template.ts";
import { toDeploymentView } from "../../controller/observe/deployment-view.ts";
import type { PipeScalingView } from "../../controller/observe/pipe-scaling-view.ts";
import { FALLBACK_REASONS, type FallbackReason } from "../../crd/fallback-reasons.ts";
import type { PipeFallback } from "../../crd/pipe-scaling.ts";
import type { ResizeStrategy } from "../../domain/resize-strategy.ts";
import type { Deployment } from "../../kube/objects.ts";
import type { Installation } from "./installation.ts";
import { checkInPlacePermissions } from "./permissions.ts";
import type { Services } from "./pipes.ts";
import type { Reader } from "./reader.ts";
import { note, ok, type Result, warning } from "./result.ts";
import { checkPodResizes } from "./server.ts";

export interface InPlaceOptions {
  /** The installed controller, if it was found. */
  readonly controller: Installation | undefined;
  readonly services: Services;
  readonly scalings: readonly PipeScalingView[];
  /** The pipes. */
  readonly deployments: readonly (Deployment & {
    readonly spec: { readonly template: PodTemplate };
  })[];
}

/** Checks whether pipes can be resized in place; adds no result if no service wants that. */
export async function checkInPlace(reader: Reader, options: InPlaceOptions): Promise<void> {
  const { controller, services, scalings, deployments } = options;
  const { client, signal, report } = reader;
  const wanted = scalings.filter(
    ({ metadata, spec }) =>
      services.get(metadata.name)?.namespace === metadata.namespace &&
      isWanted(spec.strategy ?? controller?.resizeStrategy),
  );
  if (wanted.length === 0 && !isWanted(controller?.resizeStrategy)) return;
  const ids = new Set(wanted.map(({ metadata }) => metadata.name));
  const ofServer = reader.allowed("in-place", "get /version and /api/v1", checkPodResizes(client, signal));
  const ofController = controller && checkInPlacePermissions(reader, controller);
  const results = [
    ...((await ofServer) ?? []),
    ...((await ofController) ?? []),
    ...deployments.flatMap((deployment) => checkTemplate(deployment, ids)),
    ...wanted.flatMap(checkFallbacks),
  ];
  const healthy = [ok(`Pipes can be resized in place; services that want it: ${wanted.length}.`)];
  report.add("in-place", results.length === 0 ? healthy : results);
}

function isWanted(strategy: ResizeStrategy | undefined): boolean {
  return strategy === "InPlaceOrRollout";
}

/** Finds what would keep a pipe from being resized in place before a rescale does. */
function checkTemplate(
  deployment: InPlaceOptions["deployments"][number],
  services: ReadonlySet<string>,
): Result[] {
  const { metadata, serviceId, container } = toDeploymentView(deployment);
  if (!services.has(serviceId) || "problem" in container) return [];
  const problem = podTemplateProblem(deployment.spec.template, serviceId, container.name);
  if (!problem) return [];
  const subject = `The pipe ${metadata.namespace}/${metadata.name}`;
  return [warning(`${subject} cannot be resized in place: ${problem.message}.`, REMEDIES[problem.reason])];
}

/** Reasons that are reported for the template itself, which may have been fixed since. */
const OF_TEMPLATE: ReadonlySet<string> = new Set<FallbackReason>(["PodsNotLabeled", "ContainerNotNamed"]);

function checkFallbacks({ metadata, status }: PipeScalingView): Result[] {
  return (status.pipes?.fallbacks ?? [])
    .filter(({ reason }) => !OF_TEMPLATE.has(reason))
    .map((fallback) => resultOf(metadata.namespace, fallback));
}

function resultOf(namespace: string, { pipe, reason: text, message }: PipeFallback): Result {
  const sentence = `The pipe ${namespace}/${pipe} was not resized in place (${text}): ${message}.`;
  // A later version may have written an unknown one.
  const reason = FALLBACK_REASONS.find((each) => each === text);
  const remedy = reason ? REMEDIES[reason] : "Read the message.";
  return reason === undefined || TRANSIENT.has(reason) ? note(sentence, remedy) : warning(sentence, remedy);
}

/** Reasons that can be gone at the next resize. */
const TRANSIENT: ReadonlySet<FallbackReason> = new Set<FallbackReason>([
  ...([
    "CommitTimeout",
    "ContainerNotRunning",
    "Deferred",
    "ListTimeout",
    "NotSettled",
    "ResizeError",
    "ResizeTimeout",
    "Restarted",
  ] as const),
]);

const PAGE = "docs/explanation/in-place.md";

const REMEDIES: Readonly<Record<FallbackReason, string>> = {
  CommitTimeout:
    "Check the kube-controller-manager, and the log of the controller for errors of the API server or a webhook.",
  ContainerNotNamed: `Add the annotation to the pod template (${PAGE}). This is a rollout.`,
  ContainerNotRunning: "Check the pods of the pipe: kubectl get pods",
  ContainerRestarts: "Remove the resizePolicy from the container.",
  Deferred: "Add nodes, or leave more room on each, so that pods can grow where they run.",
  Forbidden: "helm upgrade with rbac.inPlaceResize=true.",
  Infeasible: "Do not run the pipe on nodes with a static CPU or memory manager, or with swap.",
  ListTimeout: "If it happens again, check the load of the API server.",
  NotSupported: "Upgrade the cluster and its nodes to Kubernetes 1.35 or later.",
  NotSettled: "Wait for the rollout of the owner, or resume the Deployment.",
  PodsNotLabeled: `Add the labels of the Deployment to its pod template (${PAGE}). This is a rollout.`,
  Refused:
    "Raise the quota or LimitRange, or exclude the pipe from the policy or webhook, that the message names.",
  ResizeError: "A memory limit below the usage cannot be applied; otherwise check the kubelet of the node.",
  ResizeTimeout: "Check the kubelet of the node.",
  Restarted:
    "Find out why the container stopped, for example because of a smaller memory limit: kubectl describe pod",
  Reverted: "Find what changes the pod: kubectl get pod <pod> --output yaml --show-managed-fields",
  TemplateChanged: "Exclude pipes from the webhook or policy that changes the pod template at each write.",
};
