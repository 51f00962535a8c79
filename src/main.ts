#!/usr/bin/env node
import { COMMANDS } from "./all-commands.ts";
import { EXIT_FAILURE } from "./cli/exit-codes.ts";
import { processIo } from "./cli/process-io.ts";
import { runProgram } from "./cli/program.ts";

try {
  // biome-ignore lint/style/noProcessEnv: the one place where the environment is read; from here it is an argument
  const exitCode = await runProgram(COMMANDS, process.argv.slice(2), processIo(process.env));
  // One that ended by itself has said how already (run-process.ts).
  process.exitCode ??= exitCode;
} catch (error) {
  process.stderr.write(`${String(error)}\n`);
  process.exitCode = EXIT_FAILURE;
}
