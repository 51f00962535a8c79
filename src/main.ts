#!/usr/bin/env node
import type * as z from "zod";
import packageJson from "../package.json" with { type: "json" };
import { ADMIN_COMMANDS } from "./cli/admin-commands.ts";
import { defineCommand, type Io } from "./cli/command.ts";
import { printList } from "./cli/output.ts";
import { EXIT_FAILURE, runProgram } from "./cli/program.ts";
import { apiOptions, apiSettings, controllerOptions, controllerSettings } from "./config.ts";
import { runProcess } from "./run-process.ts";

/*
 * The one entry. The two processes are loaded only when they are asked for: a command of the administrator
 * should not wait for an HTTP server to be read.
 */

const api = defineCommand({
  name: "api",
  summary: "run the management API",
  details:
    "Answers HTTP requests with the organizations, services and keys of the records, and writes the size\n" +
    "that a caller asks for into the PipeScaling of the service. Any number of them may run.",
  examples: ["api --kubeconfig ~/.kube/config", "api --host 0.0.0.0 --tls-cert tls.crt --tls-key tls.key"],
  options: apiOptions,
  run: (values) =>
    runProcess("api", values.logLevel, async (log, signal) => {
      const settings = apiSettings(values);
      const { runApi } = await import("./api/process.ts");
      await runApi(settings, log, signal);
    }),
});

const controller = defineCommand({
  name: "controller",
  summary: "run the controller",
  details:
    "Gives the database pipes of each service the size that its PipeScaling asks for, a few at a time, and\n" +
    "reports how far they are. Of several that run, one is at work and the others wait to take over.",
  examples: [
    "controller --kubeconfig ~/.kube/config",
    "controller --pipe-namespaces acme-pipes,globex-pipes --rollout-timeout 30m",
    "controller --tiers-file new-tiers.yaml --dry-run",
  ],
  options: controllerOptions,
  run: (values, io) => {
    if (values.dryRun) return printDryRun(values, io);
    return runProcess("controller", values.logLevel, async (log, signal) => {
      const settings = controllerSettings(values);
      const { runController } = await import("./controller/process.ts");
      await runController(settings, log, signal);
    });
  },
});

async function printDryRun(values: z.output<typeof controllerOptions>, io: Io): Promise<void> {
  const { dryRun } = await import("./controller/dry-run.ts");
  const { steps, services, pipes } = await dryRun(controllerSettings(values));
  if (steps.length > 0) {
    printList(
      io,
      "table",
      ["service", "namespace", "pipe", "size", "wanted", "action"],
      steps.map((each) => ({ ...each })),
    );
  }
  const none = steps.length === 0 ? " There is nothing to do." : "";
  io.err(`Dry run: nothing was written. Services: ${services}, pipes: ${pipes}.${none}\n`);
}

try {
  const exitCode = await runProgram(
    { version: packageJson.version, commands: [api, controller], groups: ADMIN_COMMANDS },
    process.argv.slice(2),
    {
      // biome-ignore lint/style/noProcessEnv: the one place where the environment is read; from here it is an argument
      env: process.env,
      out: (text) => process.stdout.write(text),
      err: (text) => process.stderr.write(text),
    },
  );
  // One that ended by itself has said how already (run-process.ts).
  process.exitCode ??= exitCode;
} catch (error) {
  process.stderr.write(`${String(error)}\n`);
  process.exitCode = EXIT_FAILURE;
}
