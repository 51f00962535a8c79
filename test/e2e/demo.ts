import { constants } from "node:os";
import { ClusterError, messageOf } from "@pipe-scaling/local-cluster/errors";
import { Command } from "commander";
import { sentenceFor } from "../../src/cli/failure.ts";
import { Narration } from "./demo/narration.ts";
import { runDemo } from "./demo/story.ts";

/** `npm run demo`: runs the operator on a real Kubernetes, in less than a minute. */

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

const HELP = `
It uses only the cluster that it starts, and ignores KUBECONFIG and your own kubeconfig. The exit code is 0 only if
every step succeeds.

Environment:
  NO_COLOR                       disables colors
  PIPE_SCALING_CLUSTER_BINARIES  folder with the programs of the cluster; disables downloads
  PIPE_SCALING_CACHE_DIR         folder for programs and clusters
                                 (default: pipe-scaling-operator in $XDG_CACHE_HOME or ~/.cache)

Examples:
  npm run demo
  npm run demo -- --keep`;

function program(): Command {
  return new Command("npm run demo --")
    .description(
      "Starts a Kubernetes cluster on this machine, resizes the database pipes of a service with one HTTP request, shows rejected requests and a change of tier, and removes everything.",
    )
    .option("--keep", "leave the cluster and the processes running, and print the commands to try")
    .configureHelp({ helpWidth: 100 })
    .addHelpText("after", HELP)
    .showHelpAfterError("See npm run demo -- --help.")
    .action(({ keep = false }: { keep?: boolean }) => demo(keep));
}

async function demo(keep: boolean): Promise<void> {
  const stopping = new AbortController();
  let stoppedBy: NodeJS.Signals | undefined;
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      // A second signal exits immediately; the clean-up at exit still runs.
      if (stoppedBy) process.exit(128 + constants.signals[signal]);
      stoppedBy = signal;
      stopping.abort(new Error(`stopped by ${signal}`));
    });
  }
  try {
    await runDemo({ narration: new Narration(process.stdout), keep, signal: stopping.signal });
  } catch (error) {
    console.error(
      `\n${stoppedBy ? "Stopped. Everything that the demo started is removed." : failure(error)}`,
    );
    process.exitCode = stoppedBy ? 128 + constants.signals[stoppedBy] : 1;
  }
  // Signal handlers and running processes would keep this process alive.
  process.exit();
}

function failure(error: unknown): string {
  if (error instanceof ClusterError) return error.message;
  return `The demo failed: ${sentenceFor(error) ?? messageOf(error)}`;
}

await program().parseAsync();
