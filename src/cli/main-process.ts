import { EXIT_FAILURE } from "./exit-codes.ts";
import { processIo } from "./process-io.ts";
import { type ProgramSpec, runProgram } from "./program.ts";

/** Runs a program with the command line and the environment of this process, and sets the exit code. */
export async function runAsProcess(program: string, spec: ProgramSpec): Promise<void> {
  try {
    // biome-ignore lint/style/noProcessEnv: the only place that reads the environment; everywhere else it is an argument
    const exitCode = await runProgram(spec, process.argv.slice(2), processIo(process.env, program));
    // A long-lived process that must be restarted has set the exit code itself (run-process.ts).
    process.exitCode ??= exitCode;
  } catch (error) {
    process.stderr.write(`${String(error)}\n`);
    process.exitCode = EXIT_FAILURE;
  }
}
