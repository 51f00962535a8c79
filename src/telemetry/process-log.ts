import { type DestinationStream, pino } from "pino";
import { createLogger, type Logger, type LogLevel } from "./log.ts";

/**
 * Lines are written in batches of this many bytes. A system call for each request would cost more than authenticating
 * it, and each write wakes the reader. This is half the capacity of a pipe on Linux.
 */
const BATCH_BYTES = 32_768;

/** Maximum time that a line waits for its batch to fill, and the time after which a failed write is retried. */
const FLUSH_MS = 250;

/** If more bytes wait for a slow reader, further lines are dropped and counted. */
const MAX_BUFFERED_BYTES = 1_048_576;

/** Maximum time that the end of the process waits for a slow reader. */
const LAST_FLUSH_MS = 1000;
const LAST_RETRY_MS = 5;

export interface ProcessLog {
  readonly log: Logger;
  /** Writes the buffered lines. Call it last: from the `exit` event of the process. */
  readonly end: () => void;
}

/** The log of a long-lived process, on its standard output. */
export function createProcessLog(level: LogLevel, component: string): ProcessLog {
  const { stdout } = process;
  // Accessing `process.stdout` makes a pipe non-blocking. The destination handles write errors itself.
  stdout.on("error", () => undefined);
  const destination = createLogDestination(stdout.fd, (lines) =>
    log.warn({ lines }, "log lines were dropped because the reader of the log was too slow"),
  );
  const log = createLogger(level, component, destination);
  return { log, end: () => destination.end() };
}

export interface LogDestination extends DestinationStream {
  /** Writes as much as the file accepts without waiting; never throws. pino calls it after a fatal line. */
  flushSync(): void;
  /** Same as `flushSync`, but waits up to a second for a slow reader. */
  end(): void;
}

/**
 * Buffers log lines and writes them in order to a file, a pipe or a terminal. It never throws, and only `end` waits:
 *
 * - If a pipe or disk is full, lines wait in a bounded buffer; when it overflows, new lines are dropped.
 * - If the reader of a pipe is gone, all further lines are discarded and the process continues.
 *
 * @param fd if it is a pipe, it must be non-blocking
 * @param onDropped called with the number of dropped lines as soon as there is room for a line about them
 */
export function createLogDestination(fd: number, onDropped: (lines: number) => void): LogDestination {
  let hasReader = true;
  let hasFailed = false;
  let droppedLines = 0;
  // Synchronous writes to a non-blocking file: with asynchronous ones, a batch that is in flight when the process
  // exits is lost, and retries on a full pipe keep the process alive.
  const destination: BufferDestination = pino.destination({
    dest: fd,
    sync: true,
    // Strings would be flattened and measured again for every line.
    contentMode: "buffer",
    minLength: BATCH_BYTES,
    maxWrite: 2 * BATCH_BYTES,
    maxLength: MAX_BUFFERED_BYTES,
    periodicFlush: FLUSH_MS,
    retryEAGAIN: () => false,
  });
  destination.on("error", (error: NodeJS.ErrnoException) => {
    hasFailed = true;
    if (error.code === "EPIPE") hasReader = false;
  });
  destination.on("drop", () => {
    droppedLines += 1;
  });
  destination.on("drain", reportDropped);

  function reportDropped(): void {
    if (droppedLines === 0) return;
    const lines = droppedLines;
    onDropped(lines);
    // If the report was dropped too, the next one counts these lines again.
    droppedLines = droppedLines > lines ? lines : 0;
  }

  /** @returns whether the buffer is empty */
  function flush(): boolean {
    if (!hasReader) return true;
    hasFailed = false;
    // The destination's own flushSync retries errors other than EAGAIN forever. flush stops at an error, and
    // leaves up to one batch if there is none.
    destination.flush();
    if (!hasFailed) destination.flush();
    return !hasFailed;
  }

  return {
    write: (line) => {
      if (hasReader) destination.write(Buffer.from(line));
    },
    flushSync: () => {
      flush();
    },
    end: () => {
      const deadline = performance.now() + LAST_FLUSH_MS;
      while (!flush() && performance.now() < deadline) sleep(LAST_RETRY_MS);
      reportDropped();
      flush();
    },
  };
}

/** pino's destination. Its own type does not say that `write` accepts buffers in the content mode "buffer". */
interface BufferDestination extends Pick<ReturnType<typeof pino.destination>, "on" | "flush"> {
  write(data: string | Buffer): boolean;
}

function sleep(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
