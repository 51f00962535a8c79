import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ClusterError } from "./errors.ts";
import { COMPONENTS, type Component } from "./kwokctl.ts";
import { cannotWrite } from "./paths.ts";
import { programsRunFrom } from "./processes.ts";
import { tail } from "./run.ts";

const LOOK_MS = 200;

export interface Watched {
  /** Folder of the cluster. */
  readonly dir: string;
  readonly signal?: AbortSignal | undefined;
  /** A sentence that says what to do if another program listens on a port. */
  readonly remedy: string;
}

/**
 * Runs `body` while all started components are running. If one exits, because of an invalid argument or a port that is
 * in use, this aborts `body` immediately with the end of its log. kwokctl itself would wait for minutes.
 *
 * @throws ClusterError with the remedy if another program has the port of a component
 */
export async function whileAlive<T>(
  { dir, signal, remedy }: Watched,
  body: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  let death: Error | undefined;
  let suspect: Component | undefined;
  const timer = setInterval(() => {
    const dead = findDead(dir);
    // At a second look, because a process that is just started has no command line for a moment.
    if (dead && dead === suspect) {
      death ??= explain(dir, dead, remedy);
      over.abort(death);
    }
    suspect = dead;
  }, LOOK_MS).unref();
  try {
    return await body(AbortSignal.any([over.signal, ...(signal ? [signal] : [])]));
  } catch (error) {
    throw death ?? error;
  } finally {
    clearInterval(timer);
  }
}

function findDead(dir: string): Component | undefined {
  // In this order, because kwokctl writes the ID of a process after it has started it.
  const started = COMPONENTS.filter((component) => existsSync(join(dir, "pids", `${component}.pid`)));
  const running = new Set(programsRunFrom(join(dir, "bin")).map(({ program }) => program));
  return started.find((component) => !running.has(join(dir, "bin", component)));
}

function explain(dir: string, dead: Component, remedy: string): Error {
  const path = join(dir, "logs", `${dead}.log`);
  const log = existsSync(path) ? readFileSync(path, "utf8") : "";
  if (log.includes("no space left on device")) return cannotWrite(dir, systemError("ENOSPC"));
  const last = `The last lines of its log:\n${tail(log, 5)}`;
  if (!log.includes("address already in use")) return new Error(`${dead} exited. ${last}`);
  return new ClusterError(`${dead} exited, because another program has its port. ${remedy} ${last}`);
}

function systemError(code: string): Error {
  return Object.assign(new Error(code), { code });
}
