#!/usr/bin/env node
import { ClusterError } from "@pipe-scaling/local-cluster/errors";
import { Command, InvalidArgumentError, Option } from "commander";
import { sentenceFor } from "../src/cli/failure.ts";
import { benchApi } from "./api/bench.ts";
import { soak } from "./api/soak.ts";
import { benchController, type Extent } from "./controller/bench.ts";

/** The command line of the benchmarks: npm run bench -- <name>. */
function program(): Command {
  const main = new Command("npm run bench --")
    .description(
      "Measures the processes as they are shipped, on a local cluster, each against a baseline in the same run, and prints a table.",
    )
    .showHelpAfterError("Ask for --help to see what there is.")
    .showSuggestionAfterError()
    .addHelpText("after", HELP);
  main
    .command("api")
    .description(
      "requests per second of a cached GET, time of a PATCH, memory after a million requests and during attacks; about 7 minutes",
    )
    .option("--quick", "fewer and shorter rounds, and fewer requests: to see that it works, not to quote")
    .action(({ quick = false }: { quick?: boolean }) => benchApi({ quick, tell: say }));
  main
    .command("soak")
    .description(
      "attacks the API in all known ways at once while one client uses it, and measures that client's response times and the memory",
    )
    .addOption(new Option("--minutes <number>", "length of the attack").default(10).argParser(minutesOf))
    .action(({ minutes }: { minutes: number }) => soak({ minutes, tell: say }));
  main
    .command("controller")
    .description(
      "time, CPU and writes of 1,000 services rescaled at once, start and memory with 15,000 Deployments, calls when idle; about 20 minutes",
    )
    .addOption(
      new Option("--quick", "fewer rounds, and less of everything; about 2 minutes").conflicts("full"),
    )
    .option("--full", "start with 60,000 Deployments, and 20 idle minutes")
    .option("--profile <directory>", "writes a CPU profile of each of the processes that are compared")
    .action(({ quick = false, full = false, profile }: ControllerFlags) =>
      benchController({ extent: extentOf(quick, full), profileDir: profile, tell: say }),
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
Run it on a machine that does nothing else. A bar that is missed is a result: the exit code is 0 if everything
could be measured. docs/benchmarks.md says what the figures mean.

Environment: as for npm run cluster.`;

/** Progress is for who waits, the table for a file. */
function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

try {
  await program().parseAsync();
} catch (error) {
  // What the user can do something about is a sentence; anything else is our fault and shows where.
  console.error(error instanceof ClusterError ? error.message : (sentenceFor(error) ?? error));
  process.exitCode = 1;
}
