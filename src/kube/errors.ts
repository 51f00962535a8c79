interface StatusBody {
  readonly message?: string;
  readonly reason?: string;
  readonly details?: {
    readonly causes?: readonly {
      readonly reason?: string;
      readonly message?: string;
      readonly field?: string;
    }[];
    readonly retryAfterSeconds?: number;
  };
}

interface ResponseContext {
  readonly retryAfterHeader?: string | undefined;
  readonly isSoonAfterOutage?: boolean;
  /** Returns true if these roles were deleted, and only their bindings are left. */
  readonly areDeleted?: (roles: readonly string[]) => boolean;
}

/** A longer Retry-After, for example from a webhook, would delay calls to a server that works again. */
const MAX_RETRY_AFTER_S = 60;

/** The API server responded with an error. */
export class KubeApiError extends Error {
  override readonly name = "KubeApiError";
  readonly code: number;
  readonly reason: string;
  readonly causes: readonly { readonly reason: string; readonly message: string; readonly field: string }[];
  /** Delay before a retry that the server requests, at most a minute. */
  readonly retryAfterMs: number | undefined;
  /**
   * Another request got no response, half of one, or a 502, 503 or 504, which may come from a proxy, within 10 s before
   * this. The API server may have just started.
   */
  readonly isSoonAfterOutage: boolean;
  /** The message names missing roles, and the API server may not have loaded them yet. */
  readonly mayLackRoles: boolean;

  constructor(
    request: string,
    code: number,
    body: string,
    { retryAfterHeader, isSoonAfterOutage = false, areDeleted = () => false }: ResponseContext = {},
  ) {
    const status = parseStatus(body);
    super(`${request}: ${code} ${status.message ?? body.slice(0, 300)}`);
    this.code = code;
    this.reason = status.reason ?? "";
    this.causes = (status.details?.causes ?? []).map((cause) => ({
      reason: cause.reason ?? "",
      message: cause.message ?? "",
      field: cause.field ?? "",
    }));
    const seconds = Number(retryAfterHeader ?? status.details?.retryAfterSeconds ?? Number.NaN);
    const isTime = Number.isFinite(seconds) && seconds >= 0;
    this.retryAfterMs = isTime ? Math.min(seconds, MAX_RETRY_AFTER_S) * 1000 : undefined;
    this.isSoonAfterOutage = isSoonAfterOutage;
    const roles = missingRolesIn(this.message);
    this.mayLackRoles = roles.length > 0 && !areDeleted(roles);
  }
}

/**
 * No response, or none that can be read: connection refused or reset, timeout, incomplete response, or no credentials.
 * A write may have succeeded: see `isOutcomeUnknown`.
 */
export class KubeUnreachableError extends Error {
  override readonly name = "KubeUnreachableError";
}

/** The configuration for reaching a server cannot be used. The message tells the user what to do. */
export class KubeConfigError extends Error {
  override readonly name: string = "KubeConfigError";
}

// Not every error response is a Status, or even JSON: for a kind whose CRD was deleted, a 404 is plain text.
function parseStatus(body: string): StatusBody {
  try {
    const parsed: unknown = JSON.parse(body);
    return typeof parsed === "object" && parsed !== null ? parsed : {};
  } catch {
    return {};
  }
}

/** Returns the roles that a refusal of RBAC names as missing, because the account has bindings to them. */
function missingRolesIn(message: string): readonly string[] {
  const [, ofRbac = ""] = message.split("RBAC: ", 2);
  return ofRbac.match(/(cluster)?role\.rbac\.authorization\.k8s\.io "[^"]*" not found/g) ?? [];
}

/** Returns true if a failed write may have succeeded anyway. */
export function isOutcomeUnknown(error: unknown): boolean {
  if (error instanceof KubeApiError) return error.code >= 500;
  return error instanceof KubeUnreachableError && !isNotSent(error.cause);
}

/** Without credentials, an address or a connection, no byte of a request was sent. */
function isNotSent(cause: unknown): boolean {
  if (cause instanceof KubeConfigError) return true;
  if (!(cause instanceof Error)) return false;
  const isBeforeConnected = "syscall" in cause && /^(connect|getaddrinfo)$/.test(String(cause.syscall));
  return isBeforeConnected || isNotSent(causeOf(cause));
}

export function isCode(error: unknown, code: number): error is KubeApiError {
  return error instanceof KubeApiError && error.code === code;
}

/** Waits for a call; if the API server rejects it with this status code, the result is `otherwise`. */
export async function unlessCode<T, U>(code: number, call: Promise<T>, otherwise: U): Promise<T | U> {
  try {
    return await call;
  } catch (error) {
    if (isCode(error, code)) return otherwise;
    throw error;
  }
}

/** 409 because an object has this name. A quota that changes at the same time, or a webhook, can cause a 409, too. */
export function isAlreadyExists(error: unknown): boolean {
  return isCode(error, 409) && error.reason === "AlreadyExists" && !isDeniedByWebhook(error);
}

/** The object is no longer the one that was read: it was changed, deleted, replaced, or created meanwhile. */
export function isConflict(error: unknown): boolean {
  return (isCode(error, 409) || isCode(error, 404) || isReplaced(error)) && !isDeniedByWebhook(error);
}

/** 422 because the object was deleted and another one was created under its name. */
export function isReplaced(error: unknown): boolean {
  return isCode(error, 422) && error.causes.some((cause) => cause.field === "metadata.uid");
}

/** A webhook chooses the status code of its denial. Only the message distinguishes it from errors of the API server. */
export function isDeniedByWebhook(error: unknown): error is KubeApiError {
  return error instanceof KubeApiError && /admission webhook "[^"]*" denied the request/.test(error.message);
}

/** A policy chooses the status code of its denial, too: 401, 403, 413 or 422. */
export function isDeniedByPolicy(error: unknown): boolean {
  return (
    error instanceof KubeApiError &&
    /ValidatingAdmissionPolicy '[^']*' with binding '[^']*' denied request/.test(error.message)
  );
}

/**
 * 403 of RBAC. Only the message distinguishes it from a 403 of admission. Before "forbidden", it names the kind and the
 * object, but nothing for a path that is no resource, such as `/version`.
 */
export function isForbiddenByRbac(error: unknown): error is KubeApiError {
  return isCode(error, 403) && /\bforbidden: User "[^"]*" cannot /.test(error.message);
}

/**
 * An API server that has just started does not know the roles and their bindings yet, and rejects what they allow. The
 * message names missing roles but not missing bindings, so any 403 of RBAC soon after an outage counts. But a role that
 * was deleted before its binding is named for as long as the binding exists.
 */
export function isWithoutRoles(error: unknown): boolean {
  return isForbiddenByRbac(error) && (error.isSoonAfterOutage || error.mayLackRoles);
}

/** The API server rejects dry runs if a webhook may have side effects. */
export function isWithoutDryRun(error: unknown): boolean {
  return isCode(error, 400) && error.message.includes("does not support dry run");
}

/** The API server does not have the subresource. For an object that is gone, the message of the 404 has "not found". */
export function isMissingSubresource(error: unknown): boolean {
  if (isDeniedByWebhook(error)) return false;
  return isCode(error, 405) || (isCode(error, 404) && !error.message.includes("not found"));
}

/**
 * The size of a pod is refused by a quota or a LimitRange, or because a request is above the limit. Only the message of
 * the API server distinguishes these refusals from others.
 */
export function isRefusedSize(error: unknown): boolean {
  if (isDeniedByWebhook(error) || !(error instanceof KubeApiError)) return false;
  const { code, message } = error;
  if (code === 403)
    return /(exceeded|failed) quota|usage per (Container|Pod) is|limit to request ratio per/.test(message);
  return code === 422 && /must be less than or equal to .* limit/.test(message);
}

/** The node of a pod is too small for its new size. */
export function isAboveNode(error: unknown): boolean {
  return error instanceof KubeApiError && error.causes.some(({ reason }) => reason === "NodeCapacity");
}

/** Returns the message of the API server, without the request and the status code before it. */
export function serverMessage({ message, code }: KubeApiError): string {
  const before = `: ${code} `;
  return message.slice(message.indexOf(before) + before.length);
}

/** 403 because the namespace or the CRD of a new object is being deleted. */
export function isTerminating(error: unknown): boolean {
  if (!isCode(error, 403)) return false;
  const isOfKind = error.message.includes("custom resource definition is terminating");
  return isOfKind || error.causes.some((cause) => cause.reason === "NamespaceTerminating");
}

/**
 * Returns the message of an error for people. Some errors have none of their own: if a name has several addresses and
 * none responds, Node.js throws an AggregateError with an error for each address, and the first one is shown.
 */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = causeOf(error);
  return error.message || (cause === undefined ? error.name : messageOf(cause));
}

/** Returns the cause of an error, or the first error of several. */
export function causeOf(error: Error): unknown {
  return error instanceof AggregateError ? error.errors[0] : error.cause;
}
