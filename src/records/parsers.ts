import { parseBackup } from "./backup.ts";
import { parseKeyUsage } from "./key-usage.ts";
import type { RecordKind } from "./labels.ts";
import { parseMembers } from "./members.ts";
import { parseOrganization } from "./organization.ts";
import type { Parsed } from "./parse.ts";
import { parseService } from "./service.ts";

/** The part of a ConfigMap that is parsed. */
interface RecordObject {
  readonly metadata: {
    readonly name: string;
    readonly labels?: Readonly<Record<string, string>> | undefined;
  };
  readonly data?: Readonly<Record<string, string>> | undefined;
}

type RecordParser = (object: RecordObject) => Iterable<Parsed<unknown>>;

/** Parses an object of each kind, to find what is malformed. A record with many entries has a result for each. */
export const RECORD_PARSERS: Readonly<Record<RecordKind, RecordParser>> = {
  organization: ({ metadata, data }) => [parseOrganization(metadata.name, data)],
  service: ({ metadata, data }) => [parseService(metadata.name, metadata.labels, data)],
  members: ({ data }) => parseMembers(data).values(),
  backup: ({ metadata, data }) => [parseBackup(metadata.name, data)],
  "key-usage": ({ data }) => parseKeyUsage(data).values(),
};
