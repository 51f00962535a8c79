#!/usr/bin/env node
import { Command, InvalidArgumentError, Option } from "commander";
import { down, downAll, env, list, up } from "./commands.ts";
import { ClusterError } from "./errors.ts";

/** The command line of the local cluster: npm run cluster -- <command>. */
function program(): Command {
  const main = new Command("npm run cluster --")
    .description(
      "A real Kubernetes control plane (etcd, API server, controller manager, scheduler) on this machine. kwok simulates nodes and pods.",
    )
    .showHelpAfterError("Ask for --help to see what there is.")
    .showSuggestionAfterError();
  main
    .command("up")
    .description("start a cluster, which stays until it is taken down; returns when pods can run on it")
    .addOption(nameOption())
    .option("--pod-start <ms>", "how long a pod takes to become ready", integer(0), 200)
    .option("--pod-jitter <ms>", "up to this much more for each pod, at random", integer(0), 0)
    .option("--nodes <n>", "nodes of 256 cpu and 1024 Gi each", integer(0), 1)
    .option("--port <port>", "the API server's port (default: a free one)", integer(1, 65_535))
    .option("--kubernetes-version <version>", "Kubernetes of another version, such as 1.35.4")
    .option("--no-controller-manager", "leave it out: Deployments are then stored, but nothing rolls out")
    .action(up);
  main
    .command("down")
    .description("take a cluster down; its logs are kept for a while")
    .addOption(nameOption())
    .addOption(new Option("--all", "take down every cluster that was started by up").conflicts("name"))
    .action((options: { name: string; all?: true }) => (options.all ? downAll() : down(options)));
  main.command("list").description("show the clusters").action(list);
  main
    .command("env")
    .description('print what lets kubectl and helm talk to a cluster: eval "$(npm run -s cluster -- env)"')
    .addOption(nameOption())
    .action(env);
  main.addHelpText("after", ENVIRONMENT);
  return main;
}

const ENVIRONMENT = `
Environment:
  PIPE_SCALING_CLUSTER_BINARIES  folder of the programs (default: they are fetched into the cache)
  PIPE_SCALING_KUBERNETES_VERSION
                                 as --kubernetes-version, for everything that starts a cluster
  PIPE_SCALING_CACHE_DIR         folder of fetched programs and of clusters
                                 (default: pipe-scaling-operator in $XDG_CACHE_HOME or ~/.cache)
  PIPE_SCALING_DOWNLOAD_MIRROR   URL of a mirror of the official downloads`;

function nameOption(): Option {
  return new Option("--name <name>", "the cluster's name").default("pipes");
}

function integer(min: number, max = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= min && value <= max) return value;
    const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
    throw new InvalidArgumentError(`Give a whole number ${range}.`);
  };
}

try {
  await program().parseAsync();
} catch (error) {
  // An error that the user can fix is a sentence. Any other error is a defect and shows its stack.
  console.error(error instanceof ClusterError ? error.message : error);
  process.exitCode = 1;
}
