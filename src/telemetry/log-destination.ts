import { writeSync } from "node:fs";

/**
 * So much is written at once: a system call a line would cost a request more than its authentication, and
 * each one wakes the reader. Half of what a pipe holds on Linux.
 */
const BATCH_LENGTH = 32_768;

/** The longest that a line waits for others to be written with. */
const FLUSH_MS = 250;

/** How soon a full pipe is tried again. */
const RETRY_MS = 20;

/** What may wait for a reader that has stopped reading; beyond it lines are dropped, and counted. */
const WAITING_LENGTH = 1_048_576;

/** How long a process that ends waits for such a reader. */
const LAST_FLUSH_MS = 1000;
const LAST_RETRY_MS = 5;

export interface LogDestinationOptions {
  /** Non-blocking if it is a pipe, else a reader that has stopped reading stops us. */
  readonly fd: number;
  /** Of `node:fs` unless a test has its own. */
  readonly write?: (fd: number, bytes: Buffer) => number;
  /** Called once the reader reads again, with how many lines it will never see. */
  readonly onDropped: (lines: number) => void;
}

/**
 * Where log lines go: gathered, and written some at a time, in their order.
 *
 * - Nothing is lost as long as somebody reads and `end` is called when the process exits.
 * - A full pipe or a full disk holds lines back, up to a bound; it neither blocks nor throws.
 * - A pipe whose reader has gone takes no more: the lines go nowhere, and the process goes on.
 */
export class LogDestination {
  readonly #options: LogDestinationOptions;
  readonly #write: (fd: number, bytes: Buffer) => number;
  #lines = "";
  /** What comes before the lines: a full pipe takes what fits and leaves the rest. */
  #rest: Buffer[] = [];
  #restLength = 0;
  #dropped = 0;
  #hasReader = true;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LogDestinationOptions) {
    this.#options = options;
    this.#write = options.write ?? writeSync;
  }

  write(line: string): void {
    if (!this.#hasReader) return;
    if (this.#lines.length + this.#restLength + line.length > WAITING_LENGTH) {
      this.#dropped += 1;
      return;
    }
    this.#lines += line;
    if (this.#lines.length >= BATCH_LENGTH) this.flushSync();
    else this.#timer ??= this.#flushIn(FLUSH_MS);
  }

  /** Writes what can be written without waiting. Never throws. (The name is the one that pino calls at a fatal line.) */
  flushSync(): void {
    if (this.#writeOut() && this.#dropped > 0) this.#tellDropped();
    if (this.#rest.length === 0) return;
    clearTimeout(this.#timer);
    this.#timer = this.#flushIn(RETRY_MS);
  }

  /** The last that a process calls: waits a moment for a reader that is only slow. */
  end(): void {
    clearTimeout(this.#timer);
    const deadline = performance.now() + LAST_FLUSH_MS;
    while (!this.#writeOut() && performance.now() < deadline) sleep(LAST_RETRY_MS);
    if (this.#dropped === 0) return;
    this.#tellDropped();
    this.#writeOut();
  }

  #flushIn(delayMs: number): NodeJS.Timeout {
    return setTimeout(() => {
      this.#timer = undefined;
      this.flushSync();
    }, delayMs).unref();
  }

  /** @returns whether nothing is waiting any more */
  #writeOut(): boolean {
    if (this.#lines !== "") {
      const lines = Buffer.from(this.#lines);
      this.#rest.push(lines);
      this.#restLength += lines.length;
      this.#lines = "";
    }
    try {
      for (let [first] = this.#rest; first; [first] = this.#rest) {
        const written = this.#write(this.#options.fd, first);
        this.#restLength -= written;
        if (written < first.length) this.#rest[0] = first.subarray(written);
        else this.#rest.shift();
      }
    } catch (error) {
      // Anything else (a full pipe, a full disk) may pass.
      if (isCode(error, "EPIPE")) this.#giveUp();
    }
    return this.#rest.length === 0;
  }

  #giveUp(): void {
    this.#hasReader = false;
    this.#rest = [];
    this.#restLength = 0;
    this.#dropped = 0;
  }

  #tellDropped(): void {
    const lines = this.#dropped;
    this.#dropped = 0;
    this.#options.onDropped(lines);
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}

function sleep(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
