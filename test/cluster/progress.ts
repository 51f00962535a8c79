/** The progress of a step that can take long. */
interface Step {
  /** Shows how far it is: "3 of 8". */
  update(howFar: string): void;
  /** Ends the step, also if it failed. The failure is reported as an error. */
  end(): void;
}

export interface Progress {
  step(what: string): Step;
  /** Shows a message that is not an error. */
  note(text: string): void;
}

export interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean;
}

/** Shorter steps are not shown. */
const QUIET_MS = 2_000;
/** Interval of lines in a log. */
const LINE_MS = 15_000;
const REWRITE_MS = 500;

/**
 * Shows progress on stderr: one line that is rewritten on a terminal, or else a line every 15 seconds, so that a log
 * shows that the process is not stuck. It does not keep the process alive.
 */
export function terminalProgress(output: Output = process.stderr): Progress {
  return {
    step: (what) => (output.isTTY ? rewrittenStep(what, output) : loggedStep(what, output)),
    note: (text) => {
      output.write(`${text}\n`);
    },
  };
}

/** Shows nothing. */
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
    // \x1b[2K clears the line, because the previous text may have been longer.
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
