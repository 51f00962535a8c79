#!/usr/bin/env node
import { ClusterError } from "@pipe-scaling/local-cluster/errors";
import { Command, InvalidArgumentError, Option } from "commander";
import { sentenceFor } from "../src/cli/failure.ts";
import { benchApi } from "./api/bench.ts";
import { soak } from "./api/soak.ts";
import { benchController, type Extent } from "./controller/bench.ts";
import { benchResizes } from "./controller/bench-resizes.ts";

/** The command line of the benchmarks: npm run bench -- <name>. */
function program(): Command {
  const main = new Command("npm run bench --")
    .description(
      "Measures the bundled processes on a local cluster, each against a baseline in the same run, and prints a table.",
    )
    .showHelpAfterError("Run with --help for the list of commands.")
    .showSuggestionAfterError()
    .addHelpText("after", HELP);
  main
    .command("api")
    .description(
      "requests per second of a cached GET, time of a PATCH, memory after a million requests and during attacks, start with 20,000 services; about 11 minutes",
    )
    .option("--quick", "fewer and shorter rounds and fewer requests; the results are too noisy to publish")
    .action(({ quick = false }: { quick?: boolean }) => benchApi({ quick, report }));
  main
    .command("soak")
    .description(
      "runs all known attacks on both ports of the API together while one client uses it, over TLS and over plain HTTP, and measures memory and the response times of the client and of probes",
    )
    .addOption(
      new Option("--minutes <number>", "length of each of the two attacks").default(10).argParser(minutesOf),
    )
    .action(({ minutes }: { minutes: number }) => soak({ minutes, report }));
  main
    .command("controller")
    .description(
      "time, CPU and writes of 1,000 services rescaled together, start and memory with 15,000 Deployments, calls when idle; about 20 minutes",
    )
    .addOption(
      new Option("--quick", "fewer rounds, and less of everything; about 2 minutes").conflicts("full"),
    )
    .option("--full", "start with 60,000 Deployments, and 20 idle minutes")
    .option("--profile <directory>", "folder for a CPU profile of each compared process")
    .action(({ quick = false, full = false, profile }: ControllerFlags) =>
      benchController({ extent: extentOf(quick, full), profileDir: profile, report }),
    );
  main
    .command("resizes")
    .description(
      "time, CPU and writes of 100 services with pods, resized in place and by rollouts, and start and memory with 3,000 Deployments and pods; about 40 minutes",
    )
    .addOption(new Option("--quick", "10 services; about 2 minutes").conflicts("full"))
    .option("--full", "resize 1,000 services once, instead of 100 services three times")
    .option("--profile <directory>", "folder for a CPU profile of each controller")
    .action(({ quick = false, full = false, profile }: ControllerFlags) =>
      benchResizes({ extent: extentOf(quick, full), profileDir: profile, report }),
    );
  return main;
}

interface ControllerFlags {
  readonly quick?: boolean;
  readonly full?: boolean;
  readonly profile?: string;
}

/** @throws InvalidArgumentError */
function minutesOf(text: string): number {
  const minutes = Number(text);
  if (minutes > 0 && minutes <= 60) return minutes;
  throw new InvalidArgumentError("It must be a number of minutes, at most 60.");
}

function extentOf(quick: boolean, full: boolean): Extent {
  if (full) return "full";
  return quick ? "quick" : "standard";
}

const HELP = `
Run it on an idle machine. The exit code is 0 if everything was measured, even if a target is missed.
docs/benchmarks.md explains the figures.

Environment: as for npm run cluster.`;

/** Writes progress to standard error, so that the table can be redirected to a file. */
function report(text: string): void {
  process.stderr.write(`${text}\n`);
}

try {
  await program().parseAsync();
} catch (error) {
  // Errors that the user can fix are a sentence; any other is a bug and gets a stack trace.
  console.error(error instanceof ClusterError ? error.message : (sentenceFor(error) ?? error));
  process.exitCode = 1;
}
