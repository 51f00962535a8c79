import type { VersionInfo } from "@kubernetes/client-node";
import type { KubeClient } from "../../kube/client.ts";
import { isCode, KubeApiError, KubeUnreachableError } from "../../kube/errors.ts";
import type { Clock } from "../../runtime/clock.ts";
import { roughly } from "../view/time.ts";
import { error, note, ok, type Result, warning } from "./result.ts";

/** As in the chart (kubeVersion): older servers do not support some rules of the CRD. */
const MIN_MINOR = 30;

/** Noticeable in the times that commands print. */
const MAX_SKEW_MS = 5000;

/** Checks the version of the API server. Throws if it cannot be reached. */
export async function checkServer(
  client: Pick<KubeClient, "json" | "server">,
  signal: AbortSignal,
): Promise<Result> {
  const { major, minor, gitVersion } = await client.json<VersionInfo>({ path: "/version", signal });
  // Vendors append to it: "31+".
  const isSupported = major === "1" && Number.parseInt(minor, 10) >= MIN_MINOR;
  return isSupported
    ? ok(`${client.server} is reachable and runs Kubernetes ${gitVersion}.`)
    : error(
        `The cluster runs Kubernetes ${gitVersion}, but the CRD needs 1.${MIN_MINOR} or later.`,
        "Upgrade the control plane of the cluster.",
      );
}

/** The release in which the kubelet reports everything that a resize needs. */
const MIN_RESIZE_MINOR = 35;

/** Checks whether the API server can resize running pods. */
export async function checkPodResizes(
  client: Pick<KubeClient, "json">,
  signal: AbortSignal,
): Promise<Result[]> {
  const { major, minor, gitVersion } = await client.json<VersionInfo>({ path: "/version", signal });
  if (major === "1" && Number.parseInt(minor, 10) < MIN_RESIZE_MINOR) {
    return [
      warning(
        `The cluster runs Kubernetes ${gitVersion}, so pipes restart, although they should be resized in place: that needs 1.${MIN_RESIZE_MINOR} or later.`,
        "Upgrade the cluster, or set controller.config.resizeStrategy=Rollout in the values of the chart.",
      ),
    ];
  }
  const { resources } = await client.json<{ readonly resources: readonly { readonly name: string }[] }>({
    path: "/api/v1",
    signal,
  });
  if (resources.some(({ name }) => name === "pods/resize")) return [];
  return [
    warning(
      "The API server does not serve pods/resize, so pipes restart, although they should be resized in place.",
      "Enable the feature gate InPlacePodVerticalScaling, or set controller.config.resizeStrategy=Rollout in the values of the chart.",
    ),
  ];
}

/** The result if the API server does not respond, or rejects the requests; any other error is rethrown. */
export function serverFailure(server: string, cause: unknown): Result {
  if (isCode(cause, 401)) {
    return error(
      `${server} does not accept the credentials of the kubeconfig.`,
      "Renew them, or use another kubeconfig: --kubeconfig",
    );
  }
  if (cause instanceof KubeApiError) {
    return error(
      `${server} rejected a request, and nothing more was checked: ${cause.message}.`,
      "Try again; if it continues, check the control plane of the cluster.",
    );
  }
  if (!(cause instanceof KubeUnreachableError)) throw cause;
  return error(
    `${server} cannot be reached: ${cause.message}.`,
    "Check that the cluster runs, that the kubeconfig names its server, and that this machine can connect to it.",
  );
}

interface SelfReview {
  readonly metadata?: { readonly creationTimestamp?: string };
}

/** Milliseconds by which the clock of the API server is ahead of ours; `undefined` if it sends no time. */
export async function clockOffsetMs(
  client: KubeClient,
  clock: Clock,
  signal: AbortSignal,
): Promise<number | undefined> {
  const startedAt = clock.now();
  const review: SelfReview = await client.json({
    method: "POST",
    path: "/apis/authentication.k8s.io/v1/selfsubjectreviews",
    body: { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" },
    signal,
  });
  const middle = (startedAt + clock.now()) / 2;
  // Truncated to whole seconds, half a second on average.
  const theirs = Date.parse(review.metadata?.creationTimestamp ?? "") + 500;
  return Number.isNaN(theirs) ? undefined : theirs - middle;
}

export function checkClock(offsetMs: number | undefined): Result {
  if (offsetMs === undefined) return note("Not checked: the API server does not send its time.");
  if (Math.abs(offsetMs) < MAX_SKEW_MS) {
    return ok("The clocks of this machine and of the API server agree.");
  }
  const direction = offsetMs > 0 ? "behind" : "ahead of";
  return warning(
    `The clock of this machine is ${roughly(Math.abs(offsetMs))} ${direction} that of the API server, so times that you give or see here, such as the expiry of a key, are wrong by that much.`,
    "Synchronize both clocks by NTP: timedatectl status shows that of this machine.",
  );
}
