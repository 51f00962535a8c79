import { stackOf } from "./cli/program.ts";
import { StartAnewError } from "./runtime/start-anew.ts";
import { createProcessLog, type Logger, type LogLevel } from "./telemetry/log.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

const LINGER_MS = 3000;

/**
 * Runs one of the long-lived processes until it ends by itself or is told to by a signal. The first signal
 * lets it finish what is under way; a second one ends it there and then. Whichever way it ends, the log is
 * written out first.
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
    log.fatal({ err }, "a promise was rejected and nobody listened: a fault of this program");
    process.exit(1);
  });
  // Only watches: Node goes on to end the process, with the stack on standard error.
  process.on("uncaughtExceptionMonitor", (err) => {
    log.fatal({ err }, "an error that nobody caught: a fault of this program");
  });
  try {
    await run(log, stop.signal);
  } catch (error) {
    // Told to stop before it had begun: that is no failure.
    if (stop.signal.aborted && error === stop.signal.reason) return;
    if (error instanceof StartAnewError) {
      log.error(error.message);
      process.exitCode = 1;
      return;
    }
    if (log.isLevelEnabled("debug")) process.stderr.write(`${stackOf(error)}\n`);
    throw error;
  } finally {
    // Whatever was forgotten must not keep alive a process that is done. Unreferenced, it waits for nothing.
    setTimeout(() => {
      log.warn("something was still running at the end: a fault of this program");
      process.exit();
    }, LINGER_MS).unref();
  }
}
