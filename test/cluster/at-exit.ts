/**
 * Clean-ups that run when this process ends: by return, exception, process.exit,
 * Ctrl-C, SIGTERM or a closed terminal. After a SIGKILL the next run cleans up
 * (remove.ts).
 *
 * Clean-ups are synchronous: that is all that an exiting process can do, and it
 * means that a second Ctrl-C cannot interrupt them.
 */
const cleanups = new Set<() => void>();

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Runs `cleanup` when this process ends. Returns the function that takes that back. */
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
  // Somebody else handles this signal too (vitest finishes its run, a demo says
  // goodbye): the process ends when they say so, by exit, and so do the cleanups.
  if (process.listenerCount(signal) > 1) return;
  runAll();
  uninstall();
  // Die of the signal itself, so that the shell sees what happened.
  process.kill(process.pid, signal);
}

function runAll(): void {
  // The last first: what writes to a folder ends before the folder goes.
  for (const cleanup of [...cleanups].reverse()) {
    cleanups.delete(cleanup);
    try {
      cleanup();
    } catch (error) {
      // One that fails must not keep the others from being run.
      console.error(error);
    }
  }
}
