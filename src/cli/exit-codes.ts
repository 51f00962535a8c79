/** How a command ends, as scripts see it. Listed in the help and in the README. */
export const EXIT_DONE = 0;
export const EXIT_FAILURE = 1;
export const EXIT_USAGE = 2;
export const EXIT_UNHEALTHY = 3;
export const EXIT_TIMEOUT = 4;
export const EXIT_INTERRUPTED = 130;
/** As a shell sees a program that SIGPIPE has ended. */
export const EXIT_BROKEN_PIPE = 141;
export const EXIT_TERMINATED = 143;

/** What each of them means, in the words of the help. */
export const EXIT_CODES: readonly (readonly [code: number, meaning: string])[] = [
  [EXIT_DONE, "done"],
  [EXIT_FAILURE, "it failed, and a sentence on standard error says why"],
  [EXIT_USAGE, "the command line is wrong, or nobody could be asked for want of a terminal"],
  [EXIT_UNHEALTHY, "it was looked at and is not well: a rescale that failed or is suspended, a finding"],
  [EXIT_TIMEOUT, "a watch ended before the outcome, because its time was up"],
  [EXIT_INTERRUPTED, "interrupted by Ctrl-C (SIGINT)"],
  [EXIT_BROKEN_PIPE, "nobody reads the output any more (SIGPIPE)"],
  [EXIT_TERMINATED, "told to end (SIGTERM)"],
];
