import {
  causeOf,
  isOutcomeUnknown,
  KubeApiError,
  KubeConfigError,
  KubeUnreachableError,
  messageOf,
} from "../kube/errors.ts";

/** An error that the user can fix; the message says how. */
export class CliError extends Error {
  override readonly name = "CliError";
}

/** The sentence for an error that is not a bug; `undefined` for a bug, which needs its stack. */
export function sentenceFor(error: unknown): string | undefined {
  if (error instanceof CliError || error instanceof KubeConfigError) return error.message;
  if (error instanceof KubeUnreachableError) {
    return `The Kubernetes API cannot be reached: ${error.message}. Check the kubeconfig, and that its server runs.`;
  }
  if (error instanceof KubeApiError) {
    if (!isOutcomeUnknown(error)) return `The Kubernetes API rejected the request: ${error.message}.`;
    // The message starts with the method.
    const change = error.message.startsWith("GET ")
      ? ""
      : " The change may have been made: check before you run the command again.";
    return `The Kubernetes API did not complete the request: ${error.message}.${change}`;
  }
  if (error instanceof Error && isOfTheSystem(error)) return `${messageOf(error)}.`;
  return undefined;
}

/** A port in use, a file that cannot be read: errors of system calls, or sentences about them. */
function isOfTheSystem(error: Error): boolean {
  if ("syscall" in error && "code" in error) return true;
  const cause = causeOf(error);
  return cause instanceof Error && isOfTheSystem(cause);
}
