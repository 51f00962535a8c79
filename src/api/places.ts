import { canonicalUuid } from "../domain/identifiers.ts";
import type { Organization } from "../records/organization.ts";
import type { Parsed } from "../records/parse.ts";
import type { Service } from "../records/service.ts";
import type { Caches } from "./caches.ts";
import { invalid, notFound } from "./problem.ts";
import type { Call } from "./routes.ts";

export type Records = Pick<Caches, "organization" | "service">;

export interface MemberPlace {
  readonly organization: Organization;
  readonly userId: string;
}

export interface ServicePlace {
  readonly organization: Organization;
  readonly service: Service;
}

/** The organization that a key belongs to, if there is a record of it. */
export function ownOrganization({ key }: Call, records: Records): Organization | undefined {
  const record = records.organization(key.organizationId);
  return record && readable(record.parsed);
}

/**
 * The organization that a path names.
 *
 * @throws Problem 400 for what is no id; 404, the same for what is absent and for what is another's
 */
export function organizationAt(call: Call, records: Records): Organization {
  return requireOwn(uuidAt(call, "organizationId"), call, records);
}

/**
 * The organization and service that a path names.
 *
 * @throws Problem 400 for what is no id; 404, the same for what is absent and for what is another's
 */
export function serviceAt(call: Call, records: Records): ServicePlace {
  const organizationId = uuidAt(call, "organizationId");
  const serviceId = uuidAt(call, "serviceId");
  const organization = requireOwn(organizationId, call, records);
  const record = records.service(serviceId);
  if (record?.organizationId !== organization.id) {
    throw notFound("There is no such service in this organization.");
  }
  return { organization, service: readable(record.parsed) };
}

/**
 * The organization that a path names, and the id of a user in it.
 *
 * @throws Problem 400 for what is no id; 404, the same for what is absent and for what is another's
 */
export function memberAt(call: Call, records: Records): MemberPlace {
  const organizationId = uuidAt(call, "organizationId");
  const userId = decoded(call.parameters.get("userId") ?? "");
  if (userId === undefined) throw invalid("The path's userId must be UTF-8, percent-encoded.");
  return { organization: requireOwn(organizationId, call, records), userId };
}

function requireOwn(organizationId: string, call: Call, records: Records): Organization {
  const organization =
    organizationId === call.key.organizationId ? ownOrganization(call, records) : undefined;
  if (!organization) throw notFound("There is no such organization.");
  return organization;
}

function uuidAt({ parameters }: Call, name: string): string {
  const id = canonicalUuid(decoded(parameters.get(name) ?? "") ?? "");
  if (id === undefined) throw invalid(`The path's ${name} must be a UUID.`);
  return id;
}

/** `undefined` for what is not UTF-8 behind the percent signs. That the rest is ASCII has Node's parser seen to. */
function decoded(segment: string): string | undefined {
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

/** A record that cannot be read fails what it is about as our fault: to call it absent would be a lie. */
export function readable<T>(parsed: Parsed<T>): T {
  if (parsed.ok) return parsed.value;
  throw new Error(`the record is malformed: ${parsed.problem}`);
}
