import { stackOf } from "./cli/program.ts";
import { RestartRequiredError } from "./runtime/restart-required.ts";
import type { Logger, LogLevel } from "./telemetry/log.ts";
import { createProcessLog } from "./telemetry/process-log.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** After `run` has ended, the process exits within this time, even if something still keeps it alive. */
const LINGER_MS = 3000;

/**
 * Runs a long-lived process until `run` ends. The first signal starts a graceful shutdown; a second one ends the
 * process at once. In each case the buffered log lines are written first.
 */
export async function runProcess(
  name: string,
  logLevel: LogLevel,
  run: (log: Logger, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const { log, end } = createProcessLog(logLevel, name);
  process.once("exit", end);
  const stop = new AbortController();
  const onSignal = (signal: NodeJS.Signals) => {
    if (stop.signal.aborted) process.exit(1);
    log.info({ signal }, "stopping");
    stop.abort();
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  process.on("unhandledRejection", (err) => {
    log.fatal({ err }, "unhandled promise rejection: this is a bug");
    process.exit(1);
  });
  // The monitor does not handle the error: Node prints the stack to standard error and ends the process.
  process.on("uncaughtExceptionMonitor", (err) => {
    log.fatal({ err }, "uncaught error: this is a bug");
  });
  try {
    await run(log, stop.signal);
  } catch (error) {
    // A signal during the startup is no failure.
    if (stop.signal.aborted && error === stop.signal.reason) return;
    if (error instanceof RestartRequiredError) {
      log.error(error.message);
      process.exitCode = 1;
      return;
    }
    if (log.isLevelEnabled("debug")) process.stderr.write(`${stackOf(error)}\n`);
    throw error;
  } finally {
    // A forgotten timer or socket must not keep the process alive. This timer does not: it is unreferenced.
    setTimeout(() => {
      log.warn("something still kept the process alive after its end: this is a bug");
      process.exit();
    }, LINGER_MS).unref();
  }
}
