import type { KubeClient } from "../../kube/client.ts";
import { isCode, KubeApiError, KubeUnreachableError } from "../../kube/errors.ts";
import type { Clock } from "../../runtime/clock.ts";
import { roughly } from "../view/time.ts";
import type { Finding } from "./finding.ts";

/** As the chart has it (kubeVersion): older servers do not know parts of the definition. */
const LEAST_MINOR = 30;

const ROUNDS = 5;
/** Ten times what is usual within a data centre. */
const SLOW_MS = 200;
/** What people notice in times that they are shown, and programs in ages that they reckon. */
const SKEW_MS = 5000;

interface Version {
  readonly major: string;
  readonly minor: string;
  readonly gitVersion: string;
}

/** What the API server says of itself, and how fast. Throws where it cannot be reached. */
export async function examineServer(
  client: Pick<KubeClient, "json" | "server">,
  clock: Clock,
  signal: AbortSignal,
): Promise<Finding[]> {
  const times: number[] = [];
  let version: Version | undefined;
  for (let round = 0; round < ROUNDS; round++) {
    const startedAt = clock.monotonic();
    version = await client.json<Version>({ path: "/version", signal });
    times.push(clock.monotonic() - startedAt);
  }
  const medianMs = times.toSorted((a, b) => a - b)[Math.floor(ROUNDS / 2)] ?? 0;
  return [...ofVersion(version, client.server), ...ofLatency(medianMs)];
}

function ofVersion(version: Version | undefined, server: string): Finding[] {
  const { major = "", minor = "", gitVersion = "unknown" } = version ?? {};
  // Vendors append to it: "31+".
  const isSupported = major === "1" && Number.parseInt(minor, 10) >= LEAST_MINOR;
  const check = "server";
  if (isSupported)
    return [{ severity: "ok", check, message: `${server} is reached; it is Kubernetes ${gitVersion}.` }];
  return [
    {
      severity: "error",
      check,
      message: `The cluster is Kubernetes ${gitVersion}, and 1.${LEAST_MINOR} is the least: the rules of the definition are not known to it.`,
      remedy: "Upgrade the cluster's control plane.",
    },
  ];
}

function ofLatency(medianMs: number): Finding[] {
  const took = `${Math.max(1, Math.round(medianMs))} ms`;
  if (medianMs < SLOW_MS) return [{ severity: "ok", check: "server", message: `It answers in ${took}.` }];
  return [
    {
      severity: "warning",
      check: "server",
      message: `It takes ${took} to answer the simplest question.`,
      remedy:
        "Unless the way there from this machine is that long, look at the load of the control plane (kubectl get --raw /metrics).",
    },
  ];
}

/** What there is to say when the API server gives no answer, or none to us; any other error is thrown again. */
export function withoutServer(server: string, error: unknown): Finding {
  if (isCode(error, 401)) {
    return {
      severity: "error",
      check: "server",
      message: `${server} does not accept the credentials of the kubeconfig.`,
      remedy: "Renew them, or use another kubeconfig: --kubeconfig",
    };
  }
  if (error instanceof KubeApiError) {
    return {
      severity: "error",
      check: "server",
      message: `${server} has refused to answer, and nothing more was looked at: ${error.message}.`,
      remedy: "Try again; if it lasts, look at the control plane of the cluster.",
    };
  }
  if (!(error instanceof KubeUnreachableError)) throw error;
  return {
    severity: "error",
    check: "server",
    message: `${server} cannot be reached: ${error.message}.`,
    remedy:
      "See that the cluster runs, that the kubeconfig names its server, and that this machine may connect to it.",
  };
}

interface SelfReview {
  readonly metadata?: { readonly creationTimestamp?: string };
  readonly status?: { readonly userInfo?: { readonly username?: string } };
}

/** How far the API server's clock is ahead of ours, and who we are to it. */
export interface Self {
  readonly user: string | undefined;
  /** Not known where the server does not tell the time. */
  readonly aheadMs: number | undefined;
}

/** Asks the API server who we are: its answer has the time of its clock, in whole seconds. */
export async function askSelf(client: KubeClient, clock: Clock, signal: AbortSignal): Promise<Self> {
  const startedAt = clock.now();
  const review: SelfReview = await client.json({
    method: "POST",
    path: "/apis/authentication.k8s.io/v1/selfsubjectreviews",
    body: { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" },
    signal,
  });
  const middle = (startedAt + clock.now()) / 2;
  // Cut off to whole seconds: on average half of one is missing.
  const theirs = Date.parse(review.metadata?.creationTimestamp ?? "") + 500;
  return {
    user: review.status?.userInfo?.username,
    aheadMs: Number.isNaN(theirs) ? undefined : theirs - middle,
  };
}

export function ofClock({ aheadMs }: Self): Finding[] {
  const check = "clock";
  if (aheadMs === undefined) {
    return [{ severity: "note", check, message: "Not looked at: the API server does not tell its time." }];
  }
  if (Math.abs(aheadMs) < SKEW_MS) {
    return [{ severity: "ok", check, message: "The clocks of this machine and of the API server agree." }];
  }
  return [
    {
      severity: "warning",
      check,
      message: `The clock of this machine is ${roughly(Math.abs(aheadMs))} ${aheadMs > 0 ? "behind" : "ahead of"} that of the API server: times that are shown or given here, such as when a key expires, are off by that.`,
      remedy: "Have both set by NTP: timedatectl status tells whether this one is.",
    },
  ];
}
