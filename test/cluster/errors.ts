/** An error that the user can fix. Its message says what is wrong and what to do. It is shown without a stack trace. */
export class ClusterError extends Error {
  override readonly name = "ClusterError";
}

/** The message of a thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The error code of the system (ENOENT, ENOSPC, …) of a thrown value or of its cause. */
export function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if ("code" in error && typeof error.code === "string") return error.code;
  return codeOf(error.cause);
}
