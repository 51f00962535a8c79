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
  if (error instanceof KubeUnreachableError || error instanceof KubeApiError) return sentenceForCall(error);
  if (error instanceof Error && isOfTheSystem(error)) return `${messageOf(error)}.`;
  return undefined;
}

/** The beginning of a message is the request. An access review is a question, although it is a POST. */
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

/** A port in use, a file that cannot be read: errors of system calls, or sentences about them. */
function isOfTheSystem(error: Error): boolean {
  if ("syscall" in error && "code" in error) return true;
  const cause = causeOf(error);
  return cause instanceof Error && isOfTheSystem(cause);
}
