import { REASONS, sentenceOf } from "../../../src/api/cluster/reasons.ts";
import { apiDocument, operationsOf } from "./api.ts";
import { code, sections, table } from "./markdown.ts";
import { REASON_TEXTS } from "./reasons.ts";

export const REASONS_HEADING = "Why a rescale is where it is";

/** What to do about an answer. */
const REMEDIES: ReadonlyMap<string, string> = new Map([
  ["400", "Put right what the sentence names; the same request would fail again."],
  [
    "401",
    "See that the key's id is the user name and its secret the password, and whether the key is disabled or expired: `pipe-scaling admin key list`.",
  ],
  [
    "403",
    "Use a key with the role that it takes, or from an address that it allows: `pipe-scaling admin key update`. Behind a proxy `api.config.trustedProxies` must have it.",
  ],
  [
    "404",
    "See that the ids are those of your own organization: `pipe-scaling organizations` shows its id, and `pipe-scaling services` lists those of its services.",
  ],
  ["405", "Use one of the methods that the header `Allow` names."],
  ["408", "Send headers within 10 s and the body within 30 s."],
  ["409", "Have scaling resumed (`suspend: false` in the PipeScaling), then send it again."],
  ["413", "Send only the fields that are to change."],
  ["415", "Send JSON in UTF-8 as `Content-Type: application/json`, not compressed."],
  ["417", "Leave `Expect` out, or let it be `100-continue`."],
  ["429", "Wait for as many seconds as `Retry-After` says."],
  ["431", "Send fewer or shorter headers."],
  ["500", "Report it with the request id; the API's log has the cause beside it."],
  [
    "503",
    "Wait for as many seconds as `Retry-After` says, then send it again; reads and writes alike may be repeated.",
  ],
]);

/** When what never comes to an operation is answered so. */
const BEFORE: ReadonlyMap<string, string> = new Map([
  ["404", "There is nothing at this path."],
  ["405", "The path does not have this method."],
  ["408", "The request did not come in time."],
  ["417", "An expectation that cannot be met."],
  ["431", "The headers are longer than 16,384 bytes."],
]);

export function errorsPage(): string {
  return sections(
    "# Errors",
    "Where something fails there is a sentence that says what to do: in the answer's `error`, in the condition's `message`, on standard error. This page is for those who want to know beforehand. The exit codes of the command line are in [cli.md](cli.md#exit-codes).",
    "## Statuses of the HTTP API",
    "A 4xx has changed nothing. What became of a write that was answered 5xx is unknown, and it is safe to send it again.",
    ...statuses(),
    `## ${REASONS_HEADING}`,
    "The word is the `reason` of the condition Ready, of a failure in the status of the PipeScaling, of an [Event](events.md), of the metric `pipe_scaling_failures_total`, and of the operation [See how far a rescale has come](http.md#see-how-far-a-rescale-has-come). Callers of the API get the sentence; the platform team finds names, numbers and the cluster's own words in the message of the condition.",
    table(
      ["reason", "what callers are told", "what it means", "what to do"],
      REASONS.map((reason) => {
        const { meaning, remedy } = REASON_TEXTS[reason];
        return [code(reason), sentenceOf(reason), meaning, remedy];
      }),
    ),
  );
}

interface Cause {
  readonly status: string;
  readonly when: string;
  /** Of the operation, where it is not the same for all. */
  readonly summary: string;
}

/** Of each status, when it is answered: by any operation, or by which. */
function statuses(): string[] {
  const document = apiDocument();
  const { responses: shared } = document.components;
  const operations = operationsOf(document);
  const causes = operations.flatMap(({ summary, responses }) =>
    Object.entries(responses).flatMap(([status, { $ref, description = "" }]): Cause[] => {
      if ($ref === undefined) return [{ status, when: description, summary }];
      const { description: when = "" } = shared[$ref.slice($ref.lastIndexOf("/") + 1)] ?? {};
      return status === "default" ? beforehand(when) : [{ status, when, summary: "" }];
    }),
  );
  const byStatus = Map.groupBy(causes, ({ status }) => status);
  byStatus.delete("200");
  return [...byStatus]
    .sort(([a], [b]) => Number(a) - Number(b))
    .map(([status, of]) => describe(status, of, operations.length));
}

function describe(status: string, causes: readonly Cause[], operations: number): string {
  const rows = [...Map.groupBy(causes, ({ when }) => when)].map(([when, of]) => {
    const summaries = [...new Set(of.map(({ summary }) => summary))].filter((summary) => summary !== "");
    const any = of.length === operations ? "any" : "any with a body";
    return [summaries.length === 0 ? any : summaries.join(", "), when];
  });
  return sections(
    `### ${status}`,
    table(["operation", "when"], rows),
    `**What to do.** ${textOf(REMEDIES, status)}`,
  );
}

/** The answer to what never comes to an operation names its statuses in its text. */
function beforehand(text: string): Cause[] {
  const named = text.match(/\b4\d\d\b/g) ?? [];
  return named.map((status) => ({ status, when: textOf(BEFORE, status), summary: "" }));
}

function textOf(texts: ReadonlyMap<string, string>, status: string): string {
  const text = texts.get(status);
  if (text === undefined) throw new Error(`the reference of errors has nothing to say of a ${status}`);
  return text;
}
