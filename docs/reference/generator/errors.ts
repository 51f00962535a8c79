import { REASON_TABLE, REASONS } from "../../../src/api/cluster/reasons.ts";
import { HEADERS_TIMEOUT_S, REQUEST_TIMEOUT_S } from "../../../src/api/server/limits.ts";
import { apiDocument, operationsOf } from "./api.ts";
import { code, sections, table } from "./markdown.ts";

export const REASONS_HEADING = "Reasons of a rescale";

/** The remedy for each status. */
const REMEDIES: ReadonlyMap<string, string> = new Map([
  [
    "400",
    "Fix what the sentence names; the same request would fail again. If it names the policy of the cluster, ask the operator.",
  ],
  [
    "401",
    "Send the ID of the key as the user name and its secret as the password. Check with `pipe-scaling admin key list` whether the key is disabled, expired or being deleted.",
  ],
  [
    "403",
    "Use a key with the required role, from an address in its access list; change both with `pipe-scaling admin key update`. Behind a proxy, add the proxy to `api.config.trustedProxies`.",
  ],
  [
    "404",
    "Check that the IDs belong to your organization: `pipe-scaling organizations` shows its ID, and `pipe-scaling services` lists the IDs of its services.",
  ],
  ["405", "Use one of the methods in the header `Allow`."],
  [
    "408",
    `Send the headers within ${HEADERS_TIMEOUT_S} s, and the whole request within ${REQUEST_TIMEOUT_S} s.`,
  ],
  [
    "409",
    "Ask the operator to resume scaling (`suspend: false` in the PipeScaling), then repeat the request.",
  ],
  ["412", "Omit the header, or send `If-Match: *`."],
  ["413", "Send only the fields that you want to change, no body with a DELETE, and no chunk extensions."],
  ["415", "Send uncompressed JSON in UTF-8 with `Content-Type: application/json`."],
  ["417", "Omit `Expect`, or set it to `100-continue`."],
  ["429", "Wait for the number of seconds in `Retry-After`."],
  ["431", "Send fewer or shorter headers."],
  ["500", "Report the error with the request ID, which the log of the API has together with the cause."],
  [
    "503",
    "Wait for the number of seconds in `Retry-After`, then repeat the request. This is safe, except for a DELETE of a boost: get the boost first.",
  ],
]);

/** The cause of each status of requests that reach no operation. */
const BEFORE: ReadonlyMap<string, string> = new Map([
  ["404", "The path does not exist."],
  ["405", "The path does not support this method."],
  ["408", "The request did not arrive in time."],
  ["413", "The chunk extensions of the body are too long."],
  ["417", "The server cannot meet the expectation."],
  ["431", "The headers are longer than 16,384 bytes, or more than 128."],
]);

export function errorsPage(): string {
  return sections(
    "# Errors",
    "Every failure has a sentence that explains it: in `error` of a response, in `message` of a condition, or on standard error. This page lists the status codes of the API and the reasons of a rescale. The exit codes of the command line are in [cli.md](cli.md#exit-codes).",
    "## Status codes of the HTTP API",
    "A request with a 4xx changed nothing. After a 5xx, the outcome of a write is unknown. The write is safe to repeat, unless it ends a boost. [http.md](http.md#operations) lists the status codes of each operation.",
    ...statuses(),
    `## ${REASONS_HEADING}`,
    "The response of [Get the progress of a rescale](http.md#get-the-progress-of-a-rescale) has one of these reasons, and the condition Ready has the same, except `Pending` and `Failed`. Those of failures are also in the status of the PipeScaling, in [Events](events.md), and in the metric `pipe_scaling_failures_total`. Callers of the API get the sentence; the message of the condition has names, numbers and the errors of the cluster for the platform team.",
    table(
      ["reason", "sentence for callers", "meaning", "remedy"],
      REASONS.map((reason) => {
        const { sentence, meaning, remedy } = REASON_TABLE[reason];
        return [code(reason), sentence, meaning, remedy];
      }),
    ),
  );
}

interface Cause {
  readonly status: string;
  readonly when: string;
}

/** One section for each status, with its causes. */
function statuses(): string[] {
  const document = apiDocument();
  const { responses: shared } = document.components;
  const causes = operationsOf(document).flatMap(({ responses }) =>
    Object.entries(responses).flatMap(([status, { $ref, description = "" }]): Cause[] => {
      if ($ref === undefined) return [{ status, when: description }];
      const { description: when = "" } = shared[$ref.slice($ref.lastIndexOf("/") + 1)] ?? {};
      return status === "default" ? beforehand(when) : [{ status, when }];
    }),
  );
  const byStatus = Map.groupBy(causes, ({ status }) => status);
  byStatus.delete("200");
  return [...byStatus].sort(([a], [b]) => Number(a) - Number(b)).map(([status, of]) => describe(status, of));
}

function describe(status: string, causes: readonly Cause[]): string {
  // In an order that does not depend on the operations.
  const unique = [...new Set(causes.map(({ when }) => when))].sort((a, b) => a.length - b.length);
  return sections(
    `### ${status}`,
    unique.map((when) => `- ${when}`).join("\n"),
    `**Remedy.** ${textOf(REMEDIES, status)}`,
  );
}

/** The description of the default response names the statuses of requests that reach no operation. */
function beforehand(text: string): Cause[] {
  const named = text.match(/\b4\d\d\b/g) ?? [];
  return named.map((status) => ({ status, when: textOf(BEFORE, status) }));
}

function textOf(texts: ReadonlyMap<string, string>, status: string): string {
  const text = texts.get(status);
  if (text === undefined) throw new Error(`the reference of errors has no text for the status ${status}`);
  return text;
}
