import { Counter, Histogram, type Registry } from "prom-client";

/** A call to the API server, as it ended. */
export interface ClusterCall {
  /** As RBAC names it: `get`, `list`, `watch`, `patch`, … */
  readonly verb: string;
  /** The plural: `secrets`; empty for what is no resource. */
  readonly resource: string;
  /** As HTTP names it. */
  readonly method: string;
  readonly host: string;
  /** 0 if no answer came. */
  readonly code: number;
  /** Until the answer began. */
  readonly seconds: number;
}

/** A call takes a millisecond or two, and at most 5 s. */
const CALL_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** @returns what is to be told of each call that a process makes to the API server */
export function clusterMetrics(registry: Registry): (call: ClusterCall) => void {
  const duration = new Histogram({
    name: "pipe_scaling_cluster_request_duration_seconds",
    help: "Time until the cluster's API server began its answer; code is none where it did not.",
    labelNames: ["verb", "resource", "code"],
    buckets: CALL_SECONDS,
    registers: [registry],
  });
  // The name and the labels are client-go's, so that dashboards for controllers show this one too.
  const total = new Counter({
    name: "rest_client_requests_total",
    help: "Calls to the cluster's API server; code is <error> where no answer came.",
    labelNames: ["code", "method", "host"],
    registers: [registry],
  });
  return ({ verb, resource, method, host, code, seconds }) => {
    duration.observe({ verb, resource, code: code === 0 ? "none" : String(code) }, seconds);
    total.inc({ code: code === 0 ? "<error>" : String(code), method, host });
  };
}
