import { isCode } from "../../kube/errors.ts";
import type { ConfigMap, KubeObject, Secret } from "../../kube/objects.ts";
import { CONFIG_MAPS, type Resource, SECRETS } from "../../kube/paths.ts";
import { type ApiKey, parseApiKey } from "../../records/api-key.ts";
import type { RecordKind } from "../../records/labels.ts";
import { type Member, parseMembers } from "../../records/members.ts";
import {
  type Organization,
  organizationConfigMapName,
  parseOrganization,
} from "../../records/organization.ts";
import type { Parsed } from "../../records/parse.ts";
import { parseService, type Service, serviceConfigMapName } from "../../records/service.ts";
import { argument } from "../argument.ts";
import { CliError } from "../failure.ts";
import type { Io } from "../io.ts";
import { uuid } from "../values.ts";
import type { DataChange, Records } from "./records.ts";
import { retryOnConflict } from "./retry.ts";

/** A kind of record that has an id. */
export interface Kind<O extends KubeObject, T> {
  /** As in "There is no …". */
  readonly noun: string;
  readonly resource: Resource;
  readonly label: RecordKind | "api-key";
  /** Where to look for ids, as in "see …". */
  readonly listedBy: string;
  get(records: Records, id: string, organizationId?: string): Promise<O | undefined>;
  parse(object: O): Parsed<T>;
}

export const ORGANIZATIONS: Kind<ConfigMap, Organization> = {
  noun: "organization",
  resource: CONFIG_MAPS,
  label: "organization",
  listedBy: "admin organization list",
  get: (records, id) => records.get(CONFIG_MAPS, organizationConfigMapName(id)),
  parse: ({ metadata, data }) => parseOrganization(metadata.name, data),
};

export const SERVICES: Kind<ConfigMap, Service> = {
  noun: "service",
  resource: CONFIG_MAPS,
  label: "service",
  listedBy: "admin service list",
  get: (records, id) => records.get(CONFIG_MAPS, serviceConfigMapName(id)),
  parse: ({ metadata, data }) => parseService(metadata.name, metadata.labels, data),
};

/** An API key with the name of its Secret. */
export type NamedKey = ApiKey & { readonly secretName: string };

export const KEYS: Kind<Secret, NamedKey> = {
  noun: "API key",
  resource: SECRETS,
  label: "api-key",
  listedBy: "admin key list --organization <uuid>",
  get: findKey,
  parse({ metadata, data }) {
    const parsed = parseApiKey(metadata.labels, data);
    return parsed.ok ? { ok: true, value: { ...parsed.value, secretName: metadata.name } } : parsed;
  },
};

/** The name of the Secret does not have the id of the key. */
async function findKey(records: Records, id: string, organizationId?: string): Promise<Secret | undefined> {
  const secrets = await records.list<Secret>(SECRETS, "api-key", organizationId);
  const [found, another] = secrets.filter(({ data }) => data?.["id"] === base64(id));
  if (!found || !another) return found;
  throw new CliError(
    `Several Secrets are the API key ${id}, among them ${found.metadata.name} and ${another.metadata.name}: delete with kubectl those that should not be.`,
  );
}

/** The format of the values in a Secret. */
export function base64(text: string): string {
  return Buffer.from(text, "utf8").toString("base64");
}

export const organizationArgument = {
  organization: argument(uuid, { description: "id of the organization" }),
};
export const serviceArgument = { service: argument(uuid, { description: "id of the service" }) };
export const keyArgument = {
  key: argument(uuid, { description: "id of the API key, as admin key list shows it" }),
};

/** A record, and the object that it was read from. */
interface Found<O extends KubeObject, T> {
  readonly object: O;
  readonly record: T;
}

/** @throws CliError if there is none with this id */
export async function requireObject<O extends KubeObject, T>(
  records: Records,
  { noun, listedBy, get }: Kind<O, T>,
  id: string,
  organizationId?: string,
): Promise<O> {
  const object = await get(records, id, organizationId);
  if (object) return object;
  await records.requireNamespace();
  const where =
    organizationId === undefined ? `the namespace ${records.namespace}` : `organization ${organizationId}`;
  throw new CliError(`There is no ${noun} with the id ${id} in ${where}: see ${listedBy}.`);
}

/** @throws CliError if there is none with this id, or its record is malformed */
export async function requireRecord<O extends KubeObject, T>(
  records: Records,
  kind: Kind<O, T>,
  id: string,
  organizationId?: string,
): Promise<Found<O, T>> {
  const object = await requireObject(records, kind, id, organizationId);
  const parsed = kind.parse(object);
  if (parsed.ok) return { object, record: parsed.value };
  throw malformedRecord(`${kind.noun} ${id}`, object, kind, records.namespace, parsed.problem);
}

/** @param what as in "The record of … is malformed" */
export function malformedRecord(
  what: string,
  { metadata }: KubeObject,
  { resource }: Pick<Kind<never, never>, "resource">,
  namespace: string,
  problem: string,
): CliError {
  const edit = `kubectl edit ${resource.plural.replace(/s$/, "")} ${metadata.name} --namespace ${namespace}`;
  return new CliError(`The record of ${what} is malformed, correct it first (${edit}): ${problem}.`);
}

/** Creates a record; `id` must not be in use. */
export async function createRecord(
  records: Records,
  { noun, resource }: Pick<Kind<never, never>, "noun" | "resource">,
  id: string,
  object: { readonly metadata: { readonly name: string } },
): Promise<void> {
  try {
    await records.create(resource, object);
  } catch (cause) {
    if (!isCode(cause, 409)) throw cause;
    throw new CliError(`The ${noun} with the id ${id} already exists; it was not changed.`, { cause });
  }
}

/**
 * Changes the data of a record. If another write comes first, the change is decided again.
 *
 * @returns the record and its object after the change
 */
export function changeRecord<O extends KubeObject, T>(
  records: Records,
  kind: Kind<O, T>,
  { id, organization }: { readonly id: string; readonly organization?: string | undefined },
  decide: (record: T) => DataChange,
): Promise<Found<O, T>> {
  return retryOnConflict(`The record of ${kind.noun} ${id}`, async () => {
    const found = await requireRecord(records, kind, id, organization);
    const object = await records.change(kind.resource, found.object, { data: decide(found.record) });
    const parsed = kind.parse(object);
    return { object, record: parsed.ok ? parsed.value : found.record };
  });
}

/** Prints a line on standard error for each malformed record, and returns the others. */
export function wellFormed<O extends KubeObject, T>(
  io: Pick<Io, "err">,
  { parse }: Pick<Kind<O, T>, "parse">,
  objects: readonly O[],
): T[] {
  return objects.flatMap((object) => {
    const parsed = parse(object);
    if (parsed.ok) return [parsed.value];
    io.err(`The record ${object.metadata.name} is malformed and was skipped: ${parsed.problem}.\n`);
    return [];
  });
}

/** Lists the well-formed records, of one organization or of all. */
export async function listRecords<O extends KubeObject, T>(
  records: Records,
  io: Io,
  kind: Kind<O, T>,
  organizationId?: string,
): Promise<T[]> {
  return wellFormed(io, kind, await records.list<O>(kind.resource, kind.label, organizationId));
}

/** Prints a line on standard error for each malformed entry, and returns the members of the others. */
export function membersOf(io: Io, object: ConfigMap | undefined): Member[] {
  return [...parseMembers(object?.data).values()].flatMap((parsed) => {
    if (parsed.ok) return [parsed.value];
    io.err(`An entry of ${object?.metadata.name} is malformed and was skipped: ${parsed.problem}.\n`);
    return [];
  });
}

/** The organization of a service, if its record is well-formed. */
export async function organizationOf(
  records: Records,
  io: Io,
  { organizationId }: Service,
): Promise<Organization | undefined> {
  const object = await ORGANIZATIONS.get(records, organizationId);
  return wellFormed(io, ORGANIZATIONS, object ? [object] : [])[0];
}
