import { Counter, Histogram, type Registry } from "prom-client";
import type { EndedCall } from "../kube/client.ts";

/** A call usually takes a millisecond or two. Few take more than 5 s, such as writes that wait for slow webhooks. */
const CALL_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

/** @returns a function to call after each call to the API server */
export function clusterMetrics(registry: Registry): (call: EndedCall) => void {
  const duration = new Histogram({
    name: "pipe_scaling_cluster_request_duration_seconds",
    help: "Time until the response headers of the Kubernetes API server arrived, in seconds; code is none without a response.",
    labelNames: ["verb", "resource", "code"],
    buckets: CALL_SECONDS,
    registers: [registry],
  });
  // The name and labels of client-go, so that dashboards for any controller show this one too.
  const total = new Counter({
    name: "rest_client_requests_total",
    help: "Calls to the Kubernetes API server; code is <error> without a response.",
    labelNames: ["code", "method", "host"],
    registers: [registry],
  });
  return ({ verb, resource, method, host, code, seconds }) => {
    duration.observe({ verb, resource, code: code === 0 ? "none" : String(code) }, seconds);
    total.inc({ code: code === 0 ? "<error>" : String(code), method, host });
  };
}
