/** One step that may take long: what it is, how far it is, and for how long it has been at it. */
interface Step {
  /** Shows the progress: "3 of 8". */
  update(howFar: string): void;
  /** Ends the step, even if it failed. The failure itself is an error. */
  end(): void;
}

export interface Progress {
  step(what: string): Step;
  /** Something that the user should know, and that is not an error. */
  note(text: string): void;
}

export interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean;
}

/** Nothing is said about steps that are over sooner than this. */
const QUIET_MS = 2_000;
/** Between two lines in a log. */
const LINE_MS = 15_000;
const REWRITE_MS = 500;

/**
 * Progress for people, on stderr: on a terminal one line that is rewritten,
 * elsewhere a new line every 15 seconds, so that a log shows that it is alive.
 * Never keeps the process alive.
 */
export function terminalProgress(output: Output = process.stderr): Progress {
  return {
    step: (what) => (output.isTTY ? rewrittenStep(what, output) : loggedStep(what, output)),
    note: (text) => {
      output.write(`${text}\n`);
    },
  };
}

/** For those who want to hear nothing. */
export const silentProgress: Progress = {
  step: () => ({ update: () => undefined, end: () => undefined }),
  note: () => undefined,
};

function rewrittenStep(what: string, output: Output): Step {
  const line = stepLine(what);
  let shown = false;
  const timer = every(REWRITE_MS, () => {
    if (line.elapsedMs() < QUIET_MS) return;
    shown = true;
    // \x1b[2K: the line before may have been longer.
    output.write(`\r\x1b[2K${line.text()}`);
  });
  return {
    update: line.update,
    end: () => {
      clearInterval(timer);
      if (shown) output.write(`\r\x1b[2K${line.text()}\n`);
    },
  };
}

function loggedStep(what: string, output: Output): Step {
  const line = stepLine(what);
  let lastMs: number | undefined;
  const timer = every(REWRITE_MS, () => {
    const elapsed = line.elapsedMs();
    if (elapsed < QUIET_MS || (lastMs !== undefined && elapsed - lastMs < LINE_MS)) return;
    lastMs = elapsed;
    output.write(`${line.text()}\n`);
  });
  return {
    update: line.update,
    end: () => {
      clearInterval(timer);
      if (lastMs !== undefined) output.write(`${line.text()}\n`);
    },
  };
}

function stepLine(what: string) {
  const start = performance.now();
  let howFar = "";
  const elapsedMs = () => performance.now() - start;
  return {
    elapsedMs,
    update: (next: string) => {
      howFar = next;
    },
    text: () => `${what}${howFar ? `: ${howFar}` : ""} (${formatElapsed(elapsedMs())})`,
  };
}

function formatElapsed(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

function every(ms: number, action: () => void): NodeJS.Timeout {
  return setInterval(action, ms).unref();
}
