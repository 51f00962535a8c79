/**
 * Requests that an API server has ended: by `VERB resource`, with the subresource if there is one. Dry runs, which
 * write nothing, have verbs of their own: `DRY-RUN-PATCH deployments`.
 */
export type RequestCounts = ReadonlyMap<string, number>;

/** They change something, or would have: a request that was refused counts as well. */
const WRITE_VERBS = ["POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"];

const SAMPLE = /^apiserver_request_total\{(.*)\} (\S+)$/gm;
const LABEL = /(\w+)="([^"]*)"/g;

/** From the text of an API server's own metrics. Of what is no resource, such as /metrics, nothing is kept. */
export function parseRequestCounts(metrics: string): RequestCounts {
  const counts = new Map<string, number>();
  for (const [, text = "", value] of metrics.matchAll(SAMPLE)) {
    const labels = new Map([...text.matchAll(LABEL)].map(([, name = "", of = ""]) => [name, of]));
    const plural = labels.get("resource") ?? "";
    if (plural === "") continue;
    const subresource = labels.get("subresource") ?? "";
    const isDryRun = (labels.get("dry_run") ?? "") !== "";
    const verb = isDryRun ? `DRY-RUN-${labels.get("verb")}` : labels.get("verb");
    const request = `${verb} ${plural}${subresource === "" ? "" : `/${subresource}`}`;
    counts.set(request, (counts.get(request) ?? 0) + Number(value));
  }
  return counts;
}

/** What came between two looks. */
export function countsBetween(before: RequestCounts, after: RequestCounts): RequestCounts {
  const growths = [...after].map(
    ([request, count]) => [request, count - (before.get(request) ?? 0)] as const,
  );
  return new Map(growths.filter(([, growth]) => growth > 0));
}

/** Without the Leases, by which controllers and the API server itself say that they live. */
export function writesOf(counts: RequestCounts): RequestCounts {
  return new Map([...counts].filter(([request]) => isWrite(request) && !isOf(request, ["leases"])));
}

/** Requests for these resources, of whatever verb. */
export function requestsOf(counts: RequestCounts, resources: readonly string[]): RequestCounts {
  return new Map([...counts].filter(([request]) => isOf(request, resources)));
}

export function sumOf(counts: RequestCounts): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

/** For people, most first: `3,000 PATCH deployments, 1,000 PATCH pipescalings/status`. */
export function describeCounts(counts: RequestCounts): string {
  const descending = [...counts].sort(([, a], [, b]) => b - a);
  return (
    descending.map(([request, count]) => `${count.toLocaleString("en")} ${request}`).join(", ") || "none"
  );
}

function isWrite(request: string): boolean {
  return WRITE_VERBS.includes(request.slice(0, request.indexOf(" ")));
}

function isOf(request: string, resources: readonly string[]): boolean {
  const [resource = ""] = request.slice(request.indexOf(" ") + 1).split("/");
  return resources.includes(resource);
}
