import type { Size } from "../domain/size.ts";
import { HEADERS_TIMEOUT_S, MAX_HEADER_BYTES, MAX_HEADERS, REQUEST_TIMEOUT_S } from "./server/limits.ts";

/** A status, and the sentence for the caller: what was wrong, what is allowed, and what to do. */
interface ErrorRow<Facts extends readonly unknown[]> {
  readonly status: number;
  readonly sentence: (...facts: Facts) => string;
}

function row(status: number, sentence: string): ErrorRow<[]>;
function row<Facts extends readonly unknown[]>(
  status: number,
  sentence: (...facts: Facts) => string,
): ErrorRow<Facts>;
function row(status: number, sentence: string | ((...facts: unknown[]) => string)): ErrorRow<unknown[]> {
  return { status, sentence: typeof sentence === "string" ? () => sentence : sentence };
}

/**
 * Every error of the API by its reason, the word that code uses for it. A sentence reveals nothing about the cluster or
 * other tenants. With a 4xx, nothing has changed. With a 5xx, a write may have been made, and is safe to repeat, unless
 * it ends a boost.
 */
export const ERRORS = {
  // Malformed HTTP
  NotHttp: row(400, "The request is not valid HTTP."),
  NotAProxy: row(400, "This server is not a proxy: send requests for other servers elsewhere."),
  HttpVersion: row(400, "The HTTP version must be 1.1 or 1.0."),
  HostCount: row(400, "The request must have exactly one Host header."),
  HostMalformed: row(400, "The Host header must be a host name or an IP address, with or without a port."),
  TransferEncoding: row(400, "The only supported Transfer-Encoding is chunked, in HTTP/1.1."),
  ExpectationUnknown: row(417, "The only supported expectation is 100-continue."),
  HeadersTooLong: row(
    431,
    `The headers must not be longer than ${MAX_HEADER_BYTES} bytes, and there must not be more than ${MAX_HEADERS}.`,
  ),
  ChunkExtensionsTooLong: row(413, "The chunk extensions of the body are too long: send none."),
  TooSlow: row(
    408,
    `The request did not arrive in time: send its headers within ${HEADERS_TIMEOUT_S} s, and all of it within ${REQUEST_TIMEOUT_S} s.`,
  ),

  // The key
  NotAuthenticated: row(401, "Authentication failed: send the key's ID and secret with HTTP Basic."),
  AddressNotAllowed: row(
    403,
    "This key may not be used from this address: only from those in its ipAccessList.",
  ),
  RoleMissing: row(403, (needed: string, roles: readonly string[]) => {
    const given = roles.length === 0 ? "no role" : `the role ${roles.join(", ")}`;
    return `The roles of this key do not allow this operation: it needs the role ${needed}, and this key has ${given}.`;
  }),
  KeyTooFast: row(429, (seconds: string) => `Too many requests with this key: try again in ${seconds} s.`),
  AddressTooFast: row(
    429,
    (seconds: string) => `Too many failed authentications from this address: try again in ${seconds} s.`,
  ),

  // The path
  NoSuchPath: row(
    404,
    "This API has no such path: check its spelling and case, and remove a trailing slash. /openapi.json lists all paths.",
  ),
  MethodNotAllowed: row(405, (allowed: string) => `This path allows only ${allowed}.`),
  MethodUnknown: row(405, (allowed: string) => `This API has only the methods ${allowed}.`),
  NotUuid: row(400, (parameter: string) => `The ${parameter} in the path must be a UUID.`),
  UserIdNotUtf8: row(400, "The userId in the path must be percent-encoded UTF-8."),
  NoSuchOrganization: row(404, "There is no such organization."),
  NoSuchService: row(404, "There is no such service in this organization."),
  NoSuchMember: row(404, "There is no such member in this organization."),
  NoBoost: row(404, "The service has no boost, or its boost has ended."),

  // The preconditions of a write, and its body
  QueryRefused: row(
    400,
    'The request must not have a query string, because no operation has one. Nothing has changed: repeat it without the part from the "?" on.',
  ),
  IfMatch: row(
    412,
    "If-Match cannot be met, because resources of this API have no entity tags: omit it, or send If-Match: *.",
  ),
  IfNoneMatch: row(412, "If-None-Match: * cannot be met, because the resource exists: omit it."),
  BodyMissing: row(400, "The request must have a body that is a JSON object."),
  BodyCompressed: row(415, "The body must not be compressed."),
  BodyType: row(
    415,
    (types: readonly string[]) => `The body's Content-Type must be ${types.join(" or ")}, in UTF-8.`,
  ),
  BodyTooLong: row(413, (bytes: number) => `The body must not be longer than ${bytes} bytes.`),
  TooManyChunks: row(413, (chunks: number) => `The body must not be sent in more than ${chunks} chunks.`),
  BodyIncomplete: row(400, "The body is incomplete."),
  BodyNotUtf8: row(400, "The body is not UTF-8."),
  BodyTooDeep: row(400, "The body is nested too deeply."),
  BodyNotJson: row(400, (why: string) => `The body is not JSON: ${why.replace(/\.+$/, "")}.`),
  BodyInvalid: row(400, (problems: string) => `${problems}.`),

  // The state
  NoPipe: row(
    400,
    "No database pipe has been provisioned on this service yet: scaling is available once there is one.",
  ),
  AboveTier: row(
    400,
    ({ cpuMillicores, memoryGib }: Size) =>
      `The size is above what the organization's tier allows: replicaCpuMillicores at most ${cpuMillicores}, replicaMemoryGb at most ${memoryGib}.`,
  ),
  BoostEnd: row(400, (rule: string) => `until ${rule}.`),
  BackupContradiction: row(
    400,
    ({ field, condition, remedy }: { field: string; condition: string; remedy: string }) =>
      `${field} ${condition}, sent or stored: ${remedy}.`,
  ),
  LastAdmin: row(
    400,
    "This is the organization's last admin: ask the operator of this API to add another admin first.",
  ),
  PolicyDenied: row(400, (what: string) => `The cluster's policy does not allow ${what}.`),
  Suspended: row(
    409,
    "Scaling of this service is suspended: the size cannot be changed until it is resumed.",
  ),

  // Not the fault of the caller
  Internal: row(500, "Something went wrong on our side. Quote the request ID when you report it."),
  Unavailable: row(503, "The API is temporarily unavailable. Try again shortly."),
  NotConfirmed: row(503, "It is not known whether the change was made. It is safe to repeat it."),
  EndNotConfirmed: row(
    503,
    "It is not known whether the boost has ended. Get the boost before you repeat the request, because that would also end a boost that someone else has started since.",
  ),
  Contended: row(503, "Other requests are changing the same object at the same time. Try again shortly."),
  QueueFull: row(503, "Too many changes of the same object at once. Try again shortly."),
  QueueSlow: row(503, "Earlier changes of the same object took too long. Try again shortly."),
  JustChanged: row(503, "The organization or the service has just changed. Try again shortly."),
  BeingSetUp: row(503, "The service is being set up again. Try again shortly."),
  UnknownTier: row(
    503,
    "The sizes that this organization may request are not known. Try again shortly; if that does not help, ask the operator of this API to correct the organization's tier.",
  ),
  NoSizeYet: row(
    503,
    "The pipes of this service have had no common size yet: their first rollout has not completed, or they keep what they had until a size is requested with PATCH. See the progress, and pipes that fail, at this path followed by /progress.",
  ),
};

export type ErrorReason = keyof typeof ERRORS;

/** The facts that the sentence of each reason needs. */
export type ErrorFacts = { readonly [R in ErrorReason]: Parameters<(typeof ERRORS)[R]["sentence"]> };
