import { REASONS } from "../../../src/api/cluster/reasons.ts";
import { knownWords } from "../../../src/api/resources/schema-parts.ts";
import { type Answer, apiDocument, type NamedOperation, operationsOf } from "./api.ts";
import { REASONS_HEADING } from "./errors.ts";
import { block, code, linkTo, sections, table } from "./markdown.ts";
import { FIELD_COLUMNS, fieldRows, type Schema } from "./schema.ts";

const ERROR = "Error";
const REASONS_LINK = `[one of these reasons](errors.md#${REASONS_HEADING.toLowerCase().replaceAll(" ", "-")})`;

export function httpPage(): string {
  const document = apiDocument();
  const operations = operationsOf(document);
  const { schemas, headers } = document.components;
  return sections(
    "# The HTTP API",
    "The API serves its own documentation without authentication: `/openapi.json` (also `/v1`) is the OpenAPI 3.1 document, and `/docs` is a page to read and try it. `/healthz`, `/readyz` and `/metrics` are only on the operations port. `api.config.pathAliases` adds alternative names of path segments.",
    document.info.description,
    "[errors.md](errors.md) has the meaning and the remedy of each status.",
    "## Operations",
    table(
      ["operation", "description"],
      operations.map(({ summary, call }) => [code(call), linkTo(summary)]),
    ),
    ...operations.map(describe),
    "## Objects",
    'The body of a 200 is `{"requestId": …, "status": 200, "result": …}`, where `result` is the object that the operation names. It is absent if the operation has no result.',
    ...Object.entries(schemas).map(([name, schema]) => object(name, schema)),
    "## Response headers",
    table(
      ["header", "description"],
      Object.entries(headers).map(([name, { description }]) => [code(name), description]),
    ),
  );
}

function describe({
  summary,
  call,
  description,
  parameters = [],
  requestBody,
  responses,
}: NamedOperation): string {
  const bodies = Object.entries(requestBody?.content ?? {});
  const [body] = bodies.map(([, { schema }]) => typeName(schema));
  const answers = Object.entries(responses).filter(([status]) => status !== "default");
  const types = bodies.map(([type]) => code(type)).join(" or ");
  return sections(
    `### ${summary}`,
    block("http", call),
    description,
    parameters.length === 0
      ? ""
      : table(
          ["path parameter", "description"],
          parameters.map((each) => [code(each.name), each.description]),
        ),
    body === undefined ? "" : `Body: ${body}, as ${types}.`,
    table(
      ["response", "when"],
      answers
        .filter(([, { $ref }]) => $ref === undefined)
        .map(([status, answer]) => [status, whenOf(answer)]),
    ),
    `Other possible responses: ${answers.flatMap(([status, { $ref }]) => ($ref === undefined ? [] : [linkToStatus(status)])).join(", ")}.`,
  );
}

function linkToStatus(status: string): string {
  return `[${status}](errors.md#${status})`;
}

function whenOf({ description = "", content }: Answer): string {
  const result = content?.["application/json"]?.schema.properties?.["result"];
  return result ? `${description} The result: ${typeName(result)}.` : description;
}

function typeName({ $ref, items }: Schema): string {
  if (items) return `list of ${typeName(items)}`;
  return $ref === undefined ? "object" : refer($ref.slice($ref.lastIndexOf("/") + 1));
}

function refer(name: string): string {
  return linkTo(name);
}

function object(name: string, schema: Schema): string {
  const [example] = schema.examples ?? [];
  return sections(
    `### ${name}`,
    schema.description ?? "",
    table(FIELD_COLUMNS, fieldRows(withoutReasons(schema), refer)),
    name === ERROR || example === undefined ? "" : block("json", JSON.stringify(example, undefined, 2)),
  );
}

/** Replaces the list of all reasons, which is too long for a cell, with a link to errors.md. */
function withoutReasons(schema: Schema): Schema {
  const words = knownWords(REASONS);
  return JSON.parse(JSON.stringify(schema), (_, value: Schema) => {
    const { description } = value ?? {};
    if (typeof description !== "string" || !description.endsWith(words)) return value;
    return { ...value, type: REASONS_LINK, description: description.replace(words, "").trimEnd() };
  });
}
