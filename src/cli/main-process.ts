import { EXIT_FAILURE } from "./exit-codes.ts";
import { processIo } from "./process-io.ts";
import { type ProgramSpec, runProgram } from "./program.ts";

/** Runs a program as this process, with the command line and the environment of it. */
export async function runAsProcess(program: string, spec: ProgramSpec): Promise<void> {
  try {
    // biome-ignore lint/style/noProcessEnv: the only place that reads the environment; everywhere else it is an argument
    const exitCode = await runProgram(spec, process.argv.slice(2), processIo(process.env, program));
    // A process that ended itself has already reported its result (run-process.ts).
    process.exitCode ??= exitCode;
  } catch (error) {
    process.stderr.write(`${String(error)}\n`);
    process.exitCode = EXIT_FAILURE;
  }
}
