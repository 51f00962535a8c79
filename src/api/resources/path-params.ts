import type { Request } from "express";
import { canonicalUuid } from "../../domain/identifiers.ts";
import type { Organization } from "../../records/organization.ts";
import type { Parsed } from "../../records/parse.ts";
import type { Service } from "../../records/service.ts";
import type { ClusterCache } from "../cluster/cluster-cache.ts";
import { apiError } from "../errors.ts";
import { reauthorize } from "../middleware/authorize.ts";
import { authenticatedKey } from "../middleware/request-context.ts";

/** The records for lookups of path parameters. */
export type TenantRecords = Pick<ClusterCache, "record">;

export interface MemberParams {
  readonly organization: Organization;
  readonly userId: string;
}

export interface ServiceParams {
  readonly organization: Organization;
  readonly service: Service;
}

/** The organization of the request's key, if it has a record. */
export function ownOrganization(request: Request, records: TenantRecords): Organization | undefined {
  const view = records.record("organization", authenticatedKey(request).organizationId);
  return view && readable(view.parsed);
}

/**
 * The organization in the path.
 *
 * @throws ApiError 400 if the parameter is not a UUID
 * @throws ApiError 404 if the organization does not exist or is not that of the key; both look the same
 */
export function organizationParam(request: Request, records: TenantRecords): Organization {
  return requireOwn(uuidParam(request, "organizationId"), request, records);
}

/**
 * The organization and the service in the path.
 *
 * @throws ApiError 400 if a parameter is not a UUID
 * @throws ApiError 404 if one of them does not exist or belongs to another tenant; both look the same
 */
export function serviceParams(request: Request, records: TenantRecords): ServiceParams {
  const organizationId = uuidParam(request, "organizationId");
  const serviceId = uuidParam(request, "serviceId");
  const organization = requireOwn(organizationId, request, records);
  const view = records.record("service", serviceId);
  if (view?.organizationId !== organization.id) throw apiError("NoSuchService");
  return { organization, service: readable(view.parsed) };
}

/**
 * The organization and the user ID in the path.
 *
 * @throws ApiError 400 if a parameter is malformed
 * @throws ApiError 404 if the organization does not exist or is not that of the key; both look the same
 */
export function memberParams(request: Request, records: TenantRecords): MemberParams {
  const organizationId = uuidParam(request, "organizationId");
  const userId = textParam(request, "userId");
  if (userId === undefined) throw apiError("UserIdNotUtf8");
  return { organization: requireOwn(organizationId, request, records), userId };
}

/**
 * Repeats the checks of a write to an organization, because the key or the organization can change while it waits.
 *
 * @throws the errors of {@link reauthorize} and {@link organizationParam}
 */
export function permitOrganization(request: Request, records: TenantRecords): void {
  reauthorize(request);
  organizationParam(request, records);
}

/**
 * Repeats the checks of a write to a service, or of a read that waits for the cluster, because the key, the organization
 * or the service can change meanwhile.
 *
 * @param before the records that the request was checked against
 * @throws the errors of {@link reauthorize} and {@link serviceParams}; ApiError 503 if the tier of the organization or
 *   the namespace of the service has changed
 */
export function permitService(request: Request, records: TenantRecords, before: ServiceParams): void {
  reauthorize(request);
  const { organization, service } = serviceParams(request, records);
  if (organization.tier === before.organization.tier && service.namespace === before.service.namespace)
    return;
  throw apiError("JustChanged");
}

function requireOwn(organizationId: string, request: Request, records: TenantRecords): Organization {
  const isOwn = organizationId === authenticatedKey(request).organizationId;
  const organization = isOwn ? ownOrganization(request, records) : undefined;
  if (!organization) throw apiError("NoSuchOrganization");
  return organization;
}

function uuidParam(request: Request, name: string): string {
  const id = canonicalUuid(textParam(request, name) ?? "");
  if (id === undefined) throw apiError("NotUuid", name);
  return id;
}

/** `undefined` if the parameter is not percent-encoded UTF-8. */
function textParam({ params, context }: Request, name: string): string | undefined {
  const value = params[name];
  if (typeof value !== "string") return undefined;
  return context.isPathMalformed ? decoded(value) : value;
}

/** Parameters of a malformed path are still encoded (middleware/request-target.ts). */
function decoded(value: string): string | undefined {
  try {
    return decodeURIComponent(value);
  } catch {
    return undefined;
  }
}

/** A malformed record causes a 500, because the object is not absent. */
export function readable<T>(parsed: Parsed<T>): T {
  if (parsed.ok) return parsed.value;
  throw new Error(`the record is malformed: ${parsed.problem}`);
}
