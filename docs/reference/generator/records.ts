import { stringify } from "yaml";
import * as z from "zod";
import { RESOURCE_LABEL } from "../../../src/records/labels.ts";
import { MAX_MEMBERS_BYTES } from "../../../src/records/members.ts";
import { MAX_RECORD_BYTES, yamlContents } from "../../../src/records/parse.ts";
import { block, code, sections, table } from "./markdown.ts";
import { DESCRIBED_RECORDS, type DescribedRecord, RECORDS } from "./record-kinds.ts";
import { FIELD_COLUMNS, fieldRows, type Schema } from "./schema.ts";

/** JSON Schema of the content of a record, with the schemas of values that are YAML. */
export function inputSchema(schema: z.ZodType): Schema {
  const made = z.toJSONSchema(schema, {
    io: "input",
    override: ({ zodSchema, jsonSchema }) => {
      const { content } = yamlContents.get(zodSchema) ?? {};
      if (content instanceof z.ZodType) Object.assign(jsonSchema, { contentSchema: inputSchema(content) });
    },
  });
  return JSON.parse(JSON.stringify(made));
}

/** The paths of the keys that have no text, as the page shows them. */
export function undescribedKeys(schema: Schema): string[] {
  const rows = fieldRows(schema, (name) => name);
  return rows.flatMap(([path = "", , , text]) => (text === "" ? [path.replaceAll("`", "")] : []));
}

export function recordsPage(): string {
  return sections(
    "# Records",
    `Records are the ConfigMaps and Secrets that the API and the controller read, in one namespace (value \`records.namespace\` of the chart). You can edit them with kubectl, keep them in git, or use the commands of \`pipe-scaling\`. The label ${code(RESOURCE_LABEL)} says which kind of record an object is; without it the object is ignored. Values are strings. A value that is a list or a map is YAML, in which every scalar stays a string and aliases are refused. A record with more than ${MAX_RECORD_BYTES.toLocaleString("en")} bytes, or with more than ${MAX_MEMBERS_BYTES.toLocaleString("en")} for members (about 1,500 of them, with UUIDs as user IDs), is malformed.`,
    "A malformed record fails the operations that need it: that of an organization, all operations with its keys. Other organizations are not affected. The API logs each malformed version of a record once (`malformed record`) and counts it in `pipe_scaling_malformed_records`; `pipe-scaling doctor` lists them with the reason. [PipeScalingMalformedRecords](../runbooks/PipeScalingMalformedRecords.md) tells how to repair one.",
    table(
      ["record", "object", "written by"],
      DESCRIBED_RECORDS.map((kind) => [RECORDS[kind].heading, RECORDS[kind].object, RECORDS[kind].writtenBy]),
    ),
    ...DESCRIBED_RECORDS.map(describe),
    "## Other Secrets",
    "The API reads its certificate from a Secret of type `kubernetes.io/tls` (`api.tls.secretName`). Its keys are those of Kubernetes, `tls.crt` and `tls.key`. The commands that use the HTTP API keep keys in a profile file on your machine, not in the cluster.",
  );
}

function describe(kind: DescribedRecord): string {
  const { heading, object, purpose, schema, example, faults } = RECORDS[kind];
  return sections(
    `## ${heading}`,
    `${object}.`,
    purpose,
    table(
      FIELD_COLUMNS,
      fieldRows(inputSchema(schema), (name) => name),
    ),
    "Example:",
    // kubectl reads YAML 1.1, in which a bare `02:00` is a number.
    block("yaml", stringify(example, { lineWidth: 0, version: "1.1" })),
    table(
      ["fault", "API", "controller"],
      faults.map(({ fault, api, controller }) => [fault, api, controller]),
    ),
  );
}
