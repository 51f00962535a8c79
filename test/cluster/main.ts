#!/usr/bin/env node
import { Command, InvalidArgumentError, Option } from "commander";
import { down, downAll, env, list, up } from "./commands.ts";
import { ClusterError } from "./errors.ts";
import { COMMAND } from "./names.ts";

/** The command line of the local cluster. */
function program(): Command {
  const main = new Command(COMMAND)
    .description(
      "Runs a real Kubernetes control plane (etcd, API server, controller manager, scheduler) on this machine. kwok simulates nodes and pods.",
    )
    .showHelpAfterError("For help, use --help.")
    .showSuggestionAfterError();
  main
    .command("up")
    .description("start a cluster that runs until `down`, and return when pods can run on it")
    .addOption(nameOption())
    .option("--pod-start <ms>", "milliseconds until a new pod is ready", integer(0), 200)
    .option("--pod-jitter <ms>", "maximum of a random time that is added for each pod", integer(0), 0)
    .option("--nodes <n>", "number of nodes, of 256 CPUs and 1024 GiB each", integer(0), 1)
    .option("--port <port>", "port of the API server (default: a free one)", integer(1, 65_535))
    .option("--kubernetes-version <version>", "another version of Kubernetes, such as 1.35.4")
    .option(
      "--no-controller-manager",
      "start no controller manager: Deployments are stored, but nothing rolls out",
    )
    .action(up);
  main
    .command("down")
    .description("remove a cluster; its logs are kept for a while")
    .addOption(nameOption())
    .addOption(new Option("--all", "remove all clusters that were started with up").conflicts("name"))
    .action((options: { name: string; all?: true }) => (options.all ? downAll() : down(options)));
  main.command("list").description("list the clusters").action(list);
  main
    .command("env")
    .description(`print the environment for kubectl and helm: eval "$(${COMMAND} env)"`)
    .addOption(nameOption())
    .action(env);
  main.addHelpText("after", ENVIRONMENT);
  return main;
}

const ENVIRONMENT = `
Environment:
  PIPE_SCALING_CLUSTER_BINARIES  folder of the programs (default: downloaded or built, in the cache); if a version
                                 of Kubernetes is chosen too, the folder must have that version
  PIPE_SCALING_KUBERNETES_VERSION
                                 like --kubernetes-version, also for tests and benchmarks
  PIPE_SCALING_CACHE_DIR         folder of programs, clusters and logs
                                 (default: pipe-scaling-operator in $XDG_CACHE_HOME or ~/.cache)
  PIPE_SCALING_DOWNLOAD_MIRROR   URL of a mirror of the official downloads`;

function nameOption(): Option {
  return new Option("--name <name>", "name of the cluster").default("pipes");
}

function integer(min: number, max = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= min && value <= max) return value;
    const range = max === Number.MAX_SAFE_INTEGER ? `not less than ${min}` : `from ${min} to ${max}`;
    throw new InvalidArgumentError(`Use a whole number ${range}.`);
  };
}

try {
  await program().parseAsync();
} catch (error) {
  // An error that the user can fix is a sentence. Any other error is a defect and shows its stack.
  console.error(error instanceof ClusterError ? error.message : error);
  process.exitCode = 1;
}
