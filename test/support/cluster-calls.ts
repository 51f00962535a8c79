/** Calls of one kind that a process has made to the API server so far. */
export interface ClusterCalls {
  readonly verb: string;
  /** Plural of the resource, with the subresource if there is one: `pipescalings/status`. */
  readonly resource: string;
  /** Status code of the responses, or `none` without a response. */
  readonly code: string;
  readonly count: number;
}

const SAMPLE =
  /^pipe_scaling_cluster_request_duration_seconds_count\{verb="([^"]+)",resource="([^"]+)",code="([^"]+)"\} (\d+)$/gm;

/**
 * Parses the calls to the API server from the Prometheus metrics of a process.
 *
 * @throws Error if there are none, because every process makes some
 */
export function parseClusterCalls(metrics: string): readonly ClusterCalls[] {
  const calls = [...metrics.matchAll(SAMPLE)].map(([, verb = "", resource = "", code = "", count]) => ({
    verb,
    resource,
    code,
    count: Number(count),
  }));
  if (calls.length === 0) throw new Error("the metrics report no call to the API server");
  return calls;
}
