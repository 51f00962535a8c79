import { stringify } from "yaml";
import * as z from "zod";
import { apiKeyData } from "../../../src/records/api-key.ts";
import { backupConfigMapData } from "../../../src/records/backup.ts";
import { keyUsageEntry } from "../../../src/records/key-usage.ts";
import {
  API_KEY_SECRET_TYPE,
  ORGANIZATION_LABEL,
  RESOURCE_LABEL,
  type RecordKind,
} from "../../../src/records/labels.ts";
import { MAX_MEMBERS_BYTES, memberEntry } from "../../../src/records/members.ts";
import { organizationData } from "../../../src/records/organization.ts";
import { MAX_RECORD_BYTES, yamlContents } from "../../../src/records/parse.ts";
import { serviceData } from "../../../src/records/service.ts";
import { tierEntry } from "../../../src/records/tiers-file.ts";
import { block, code, sections, table } from "./markdown.ts";
import { RECORD_EXAMPLES } from "./record-examples.ts";
import { RECORD_FAULTS } from "./record-faults.ts";
import { FIELD_COLUMNS, fieldRows, type Schema } from "./schema.ts";

export type DescribedRecord = RecordKind | "api-key" | "tiers";

interface RecordText {
  readonly heading: string;
  /** Kind and name of the object. */
  readonly object: string;
  readonly writtenBy: string;
  readonly purpose: string;
}

const TEXTS: Readonly<Record<DescribedRecord, RecordText>> = {
  organization: {
    heading: "Organization",
    object: "ConfigMap `organization-<organization id>`",
    writtenBy: "people, `pipe-scaling admin organization create`",
    purpose: "A customer. The ID in the name is a UUID in lower case.",
  },
  service: {
    heading: "Service",
    object: "ConfigMap `service-<service id>`",
    writtenBy: "people, `pipe-scaling admin service create`",
    purpose: `A service of an organization, and where its pipes run. The label ${code(ORGANIZATION_LABEL)} names the organization.`,
  },
  "api-key": {
    heading: "API key",
    object: `Secret \`api-key-<hexadecimal SHA-256 of the key ID>\` of type ${code(API_KEY_SECRET_TYPE)}`,
    writtenBy: "people, `pipe-scaling admin key create`; the API only reads it",
    purpose: `A key of the organization that the label ${code(ORGANIZATION_LABEL)} names. The Secret holds neither the key ID nor the secret, only hashes of them.`,
  },
  members: {
    heading: "Members",
    object: "ConfigMap `members-<organization id>`",
    writtenBy: "the API, `pipe-scaling admin member add`",
    purpose:
      "The users of an organization. There is one key for each user: the userId, in which every byte outside of `[-.a-zA-Z0-9]` is written as `_` and two upper-case hexadecimal digits. `ada@example.com` becomes `ada_40example.com`. Each value is a YAML map with these keys:",
  },
  backup: {
    heading: "Backup settings",
    object: "ConfigMap `backup-<service id>`",
    writtenBy: "the API",
    purpose:
      "The backup settings of a service that differ from the defaults. Without the record all defaults apply.",
  },
  "key-usage": {
    heading: "Key usage",
    object: "ConfigMap `key-usage-<organization id>`",
    writtenBy: "the API",
    purpose:
      "The time at which each API key was last used. There is one key for each API key: its resource ID (`id` in the Secret).",
  },
  tiers: {
    heading: "Tiers",
    object: "ConfigMap `<release>-tiers` in the namespace of the release, key `tiers.yaml`",
    writtenBy: "the chart, from its value `tiers`",
    purpose:
      "The tiers that the records of organizations name. It is not a record: both processes read it as a file when they start (`--tiers-file`), and the chart restarts them when it changes. It is a YAML map from the name of a tier to a map with these keys:",
  },
};

/** The schemas of the keys. The entries of members and of key usage have keys that are IDs. */
export const RECORD_SCHEMAS: Readonly<Record<DescribedRecord, z.ZodType>> = {
  organization: organizationData,
  service: serviceData,
  "api-key": apiKeyData,
  members: z.object({ "<encoded userId>": memberEntry }),
  backup: backupConfigMapData,
  "key-usage": z.object({ "<id of the API key>": keyUsageEntry }),
  tiers: z.object({
    "<name of the tier>": tierEntry.meta({ description: "One tier." }),
  }),
};

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
    `Records are the ConfigMaps and Secrets that the API and the controller read, in one namespace (value \`records.namespace\` of the chart). You can edit them with kubectl, keep them in git, or use the commands of \`pipe-scaling\`. The label ${code(RESOURCE_LABEL)} says which kind of record an object is; without it the object is ignored. Values are strings. A value that is a list or a map is YAML, in which every scalar stays a string and aliases are refused. A record with more than ${MAX_RECORD_BYTES.toLocaleString("en")} bytes, or with more than ${MAX_MEMBERS_BYTES.toLocaleString("en")} for members (about 1,900 of them), is malformed.`,
    "A malformed record fails operations about itself and no others. The API logs each malformed version of a record once (`malformed record`) and counts it in `pipe_scaling_malformed_records`; `pipe-scaling doctor` lists them with the reason. [PipeScalingMalformedRecords](../runbooks/PipeScalingMalformedRecords.md) tells how to repair one.",
    table(
      ["record", "object", "written by"],
      Object.values(TEXTS).map(({ heading, object, writtenBy }) => [heading, object, writtenBy]),
    ),
    ...Object.entries(RECORD_SCHEMAS).map(([kind, schema]) => describe(described(kind), schema)),
    "## Other Secrets",
    "The API reads its certificate from a Secret of type `kubernetes.io/tls` (`api.tls.secretName`). Its keys are those of Kubernetes, `tls.crt` and `tls.key`. The commands that use the HTTP API keep keys in a profile file on your machine, not in the cluster.",
  );
}

function described(kind: string): DescribedRecord {
  const found = Object.keys(TEXTS).find((each): each is DescribedRecord => each === kind);
  if (found === undefined) throw new Error(`the reference has no text about ${kind}`);
  return found;
}

function describe(kind: DescribedRecord, schema: z.ZodType): string {
  const { heading, object, purpose } = TEXTS[kind];
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
    block("yaml", stringify(RECORD_EXAMPLES[kind], { lineWidth: 0, version: "1.1" })),
    table(
      ["fault", "API", "controller"],
      RECORD_FAULTS[kind].map(({ fault, api, controller }) => [fault, api, controller]),
    ),
  );
}
