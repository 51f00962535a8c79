/**
 * Cleanups that run when this process ends: after its last statement, an exception, process.exit, Ctrl-C, SIGTERM or
 * when its terminal is closed. After a SIGKILL, the next run cleans up (remove.ts).
 *
 * Cleanups are synchronous, because an exiting process can run nothing else. So a second Ctrl-C cannot interrupt them.
 */
const cleanups = new Set<() => void>();

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Runs `cleanup` when this process ends. Returns a function that cancels this. */
export function atExit(cleanup: () => void): () => void {
  if (cleanups.size === 0) install();
  cleanups.add(cleanup);
  return () => {
    cleanups.delete(cleanup);
    if (cleanups.size === 0) uninstall();
  };
}

function install(): void {
  process.on("exit", runAll);
  for (const signal of SIGNALS) process.on(signal, onSignal);
}

function uninstall(): void {
  process.off("exit", runAll);
  for (const signal of SIGNALS) process.off(signal, onSignal);
}

function onSignal(signal: NodeJS.Signals): void {
  // If there is another handler (such as that of vitest, which finishes its run), it decides when the process exits. The
  // cleanups run then. But that handler may wait for the end of this one (as signal-exit does).
  if (process.listenerCount(signal) > 1 && !isSecondInterrupt(signal)) return;
  runAll();
  uninstall();
  process.removeAllListeners(signal);
  // End by the same signal, so that the shell sees the cause.
  process.kill(process.pid, signal);
}

/** One Ctrl-C can come twice: npm passes it on to a process that has it from the terminal. */
const TWICE_MS = 1000;
let firstInterrupt: number | undefined;

function isSecondInterrupt(signal: NodeJS.Signals): boolean {
  if (signal !== "SIGINT") return false;
  firstInterrupt ??= performance.now();
  return performance.now() - firstInterrupt > TWICE_MS;
}

function runAll(): void {
  // In reverse order: a process that writes to a folder ends before the folder is removed.
  for (const cleanup of [...cleanups].reverse()) {
    cleanups.delete(cleanup);
    try {
      cleanup();
    } catch (error) {
      // A failed cleanup must not prevent the others.
      console.error(error);
    }
  }
}
