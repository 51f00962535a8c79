#!/usr/bin/env node
import { COMMANDS } from "./all-commands.ts";
import { EXIT_FAILURE } from "./cli/exit-codes.ts";
import { processIo } from "./cli/process-io.ts";
import { runProgram } from "./cli/program.ts";

try {
  // biome-ignore lint/style/noProcessEnv: the only place that reads the environment; everywhere else it is an argument
  const exitCode = await runProgram(COMMANDS, process.argv.slice(2), processIo(process.env));
  // A process that ended itself has already reported its result (run-process.ts).
  process.exitCode ??= exitCode;
} catch (error) {
  process.stderr.write(`${String(error)}\n`);
  process.exitCode = EXIT_FAILURE;
}
