import type { Lease } from "../../kube/objects.ts";
import { roughly } from "../view/time.ts";
import type { Finding } from "./finding.ts";

const START =
  "See why no controller is at work: kubectl get pods --all-namespaces --selector app.kubernetes.io/part-of=pipe-scaling-operator";

/** @param nowMs by the clock of the API server, which is nearest to those that stamp the lease */
export function examineLease(lease: Lease | undefined, namespace: string, nowMs: number): Finding[] {
  const check = "lease";
  if (!lease) {
    return [
      {
        severity: "error",
        check,
        message: `There is no Lease in ${namespace}: no controller has been at work with these records yet, and nothing is resized.`,
        remedy: START,
      },
    ];
  }
  const { holderIdentity = "", renewTime, leaseDurationSeconds = 15 } = lease.spec ?? {};
  const agoMs = nowMs - Date.parse(renewTime ?? "");
  if (holderIdentity === "") {
    return [
      {
        severity: "error",
        check,
        message: `No controller holds the Lease ${lease.metadata.name}: the last one has ended ${roughly(agoMs)} ago, and nothing is resized.`,
        remedy: START,
      },
    ];
  }
  if (Number.isNaN(agoMs) || agoMs > 2000 * leaseDurationSeconds) {
    const ago = Number.isNaN(agoMs) ? "never" : `${roughly(agoMs)} ago the last time`;
    return [
      {
        severity: "error",
        check,
        message: `The controller ${holderIdentity} holds the Lease ${lease.metadata.name}, but has renewed it ${ago}: it is not at work, and nobody else is.`,
        remedy: START,
      },
    ];
  }
  const message = `The controller ${holderIdentity} is at work; it has renewed its lease ${roughly(agoMs)} ago.`;
  return [{ severity: "ok", check, message }];
}
