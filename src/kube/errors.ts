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

/** The API server answered, and it was no. */
export class KubeApiError extends Error {
  override readonly name = "KubeApiError";
  readonly code: number;
  readonly reason: string;
  readonly causes: readonly { readonly reason: string; readonly message: string; readonly field: string }[];
  /** What the server asked to wait before trying again. */
  readonly retryAfterMs: number | undefined;

  constructor(request: string, code: number, body: string, retryAfterHeader?: string) {
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
    this.retryAfterMs = Number.isFinite(seconds) ? seconds * 1000 : undefined;
  }
}

/** No answer: refused, reset, timed out, or cut short. Of a write the outcome is unknown. */
export class KubeUnreachableError extends Error {
  override readonly name = "KubeUnreachableError";
}

/** What the user gave us to reach a server with does not serve. The message says what to do. */
export class KubeConfigError extends Error {
  override readonly name = "KubeConfigError";
}

// Not every 404 of an API server is a Status, or even JSON (kubernetes-facts: a deleted CRD).
function parseStatus(body: string): StatusBody {
  try {
    const parsed: unknown = JSON.parse(body);
    return typeof parsed === "object" && parsed !== null ? parsed : {};
  } catch {
    return {};
  }
}

export function isCode(error: unknown, code: number): error is KubeApiError {
  return error instanceof KubeApiError && error.code === code;
}

/** 422 because the object under that name is another one by now (kubernetes-facts.md). */
export function isReplaced(error: unknown): boolean {
  return isCode(error, 422) && error.causes.some((cause) => cause.field === "metadata.uid");
}

/** 403 because we have no right to ask, whatever for; the words are all that tells it from a 403 of admission. */
export function isWithoutRight(error: unknown): boolean {
  return isCode(error, 403) && / is forbidden: User "[^"]*" cannot /.test(error.message);
}

/** 403 because nothing may be made any more in a namespace, or of a kind, that is on its way out. */
export function isTerminating(error: unknown): boolean {
  if (!isCode(error, 403)) return false;
  const isOfKind = error.message.includes("custom resource definition is terminating");
  return isOfKind || error.causes.some((cause) => cause.reason === "NamespaceTerminating");
}
