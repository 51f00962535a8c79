/**
 * Completed requests by `VERB resource`, with the subresource if there is one. Dry runs, which write nothing, have
 * separate verbs: `DRY-RUN-PATCH deployments`.
 */
export type RequestCounts = ReadonlyMap<string, number>;

/** Verbs of writes; a rejected write counts as well. */
const WRITE_VERBS = ["POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"];

const SAMPLE = /^apiserver_request_total\{(.*)\} (\S+)$/gm;
const LABEL = /(\w+)="([^"]*)"/g;

/** Parses the metrics of an API server. Paths that are not resources, such as /metrics, are left out. */
export function parseRequestCounts(metrics: string): RequestCounts {
  const counts = new Map<string, number>();
  for (const [, text = "", value] of metrics.matchAll(SAMPLE)) {
    const labels = labelsOf(text);
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

function labelsOf(text: string): ReadonlyMap<string, string> {
  return new Map([...text.matchAll(LABEL)].map(([, name = "", of = ""]) => [name, of]));
}

/** Subtracts two counts. */
export function countsBetween(before: RequestCounts, after: RequestCounts): RequestCounts {
  const growths = [...after].map(
    ([request, count]) => [request, count - (before.get(request) ?? 0)] as const,
  );
  return new Map(growths.filter(([, growth]) => growth > 0));
}

/** Selects writes, except those to Leases, which controllers and the API server renew all the time. */
export function writesOf(counts: RequestCounts): RequestCounts {
  return new Map([...counts].filter(([request]) => isWrite(request) && !isOf(request, ["leases"])));
}

/** Selects requests for these resources, with any verb. */
export function requestsOf(counts: RequestCounts, resources: readonly string[]): RequestCounts {
  return new Map([...counts].filter(([request]) => isOf(request, resources)));
}

export function sumOf(counts: RequestCounts): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

/** Formats counts, largest first: `3,000 PATCH deployments, 1,000 PATCH pipescalings/status`. */
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
