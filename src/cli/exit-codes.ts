/** The exit codes of all commands. The help and docs/reference/cli.md list them. */
export const EXIT_DONE = 0;
export const EXIT_FAILURE = 1;
export const EXIT_USAGE = 2;
export const EXIT_UNHEALTHY = 3;
export const EXIT_TIMEOUT = 4;
export const EXIT_INTERRUPTED = 130;
/** 128 + SIGPIPE, the code that a shell shows. */
export const EXIT_BROKEN_PIPE = 141;
export const EXIT_TERMINATED = 143;

/** Meaning of each exit code, as shown in the help. */
export const EXIT_CODES: readonly (readonly [code: number, meaning: string])[] = [
  [EXIT_DONE, "done"],
  [EXIT_FAILURE, "failed; standard error has the reason"],
  [EXIT_USAGE, "the command line is wrong, or a confirmation needs a terminal"],
  [EXIT_UNHEALTHY, "unhealthy: a rescale failed or is suspended, or doctor found an error"],
  [EXIT_TIMEOUT, "a watch timed out before the outcome"],
  [EXIT_INTERRUPTED, "interrupted by Ctrl-C (SIGINT)"],
  [EXIT_BROKEN_PIPE, "the reader of the output is gone (SIGPIPE)"],
  [EXIT_TERMINATED, "terminated (SIGTERM)"],
];
