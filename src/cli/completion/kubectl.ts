import { defineCommand, KUBECTL_PLUGIN } from "../command.ts";
import { COMPILE_CACHE } from "./command.ts";

/** The name under which kubectl finds the script below. */
export const KUBECTL_COMPLETION = "kubectl_complete-pipes";

/** kubectl runs it with the words after `kubectl pipes`, and completes with the lines that it prints. */
export const KUBECTL_COMPLETION_SCRIPT = `#!/bin/sh
# Completes the command line of ${KUBECTL_PLUGIN}. kubectl finds it on the PATH as ${KUBECTL_COMPLETION}.
export NODE_COMPILE_CACHE="${COMPILE_CACHE}"
exec kubectl-pipes __complete -- "$@"
`;

export const kubectlCompletion = defineCommand({
  name: "completion",
  summary: `print ${KUBECTL_COMPLETION}, the program that kubectl runs to complete this command`,
  details:
    "The npm package installs this program, and krew does not. Write it to a folder of your PATH, and make it\n" +
    "executable. It calls kubectl-pipes, so it stays valid after an update. Your shell also needs the completion of\n" +
    "kubectl itself: see kubectl completion --help.",
  examples: [`completion > ~/bin/${KUBECTL_COMPLETION} && chmod +x ~/bin/${KUBECTL_COMPLETION}`],
  options: {},
  async run(_values, io) {
    io.out(KUBECTL_COMPLETION_SCRIPT);
  },
});
