import {
  causeOf,
  isOutcomeUnknown,
  KubeApiError,
  KubeConfigError,
  KubeUnreachableError,
  messageOf,
} from "../kube/errors.ts";

/** An error that is not a bug. Its message is for the user, and the program prints it without a stack. */
export class CliError extends Error {
  override readonly name = "CliError";
}

/** Returns the sentence to print for an error; `undefined` for a bug, whose stack is printed instead. */
export function sentenceFor(error: unknown): string | undefined {
  if (error instanceof CliError || error instanceof KubeConfigError) return error.message;
  if (error instanceof KubeUnreachableError || error instanceof KubeApiError) return sentenceForCall(error);
  if (error instanceof Error && isOfTheSystem(error)) return `${messageOf(error)}.`;
  return undefined;
}

/** Matches messages about reads: they begin with the request. An access review is a POST, but changes nothing. */
const READ = /^(GET |POST \S+accessreviews: )/;

function sentenceForCall(error: KubeUnreachableError | KubeApiError): string {
  const { message } = error;
  if (isOutcomeUnknown(error) && !READ.test(message)) {
    return `The Kubernetes API did not complete the request: ${message}. The change may have been made: check before you run the command again.`;
  }
  if (error instanceof KubeUnreachableError) {
    return `The Kubernetes API cannot be reached: ${message}. Check the kubeconfig, and that its server runs.`;
  }
  const verb = isOutcomeUnknown(error) ? "did not complete" : "rejected";
  return `The Kubernetes API ${verb} the request: ${message}.`;
}

/** True if a system call failed, for example because a port is in use, or if such an error is the cause. */
function isOfTheSystem(error: Error): boolean {
  if ("syscall" in error && "code" in error) return true;
  const cause = causeOf(error);
  return cause instanceof Error && isOfTheSystem(cause);
}
