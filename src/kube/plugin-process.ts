import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { isatty } from "node:tty";

/** Time between SIGTERM and SIGKILL. */
const KILL_AFTER_MS = 1000;

/** Credentials take a few kilobytes. */
const MAX_OUTPUT_BYTES = 1024 * 1024;

/** Maximum length of the standard error of a plugin in an error message. Its end is kept. */
const MAX_MESSAGE_LENGTH = 1000;

export interface PluginProcess {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** Gives the plugin the standard input of this process, which is a terminal. */
  readonly isInteractive: boolean;
}

/**
 * Runs an exec plugin and returns its standard output. When the signal is aborted, or when this process exits, the
 * plugin and its child processes are killed.
 *
 * @throws Error with the end of a sentence about the plugin; the reason of the signal
 */
export function runPlugin(plugin: PluginProcess, signal: AbortSignal): Promise<string> {
  const { command, args, env, isInteractive } = plugin;
  const child = spawn(command, args, {
    env,
    // A plugin that prompts must stay in the session of the terminal. Any other plugin leads a process group.
    detached: !isInteractive,
    stdio: [isInteractive ? "inherit" : "ignore", "pipe", isatty(2) ? "inherit" : "pipe"],
  });
  return new Promise<string>((resolve, reject) => {
    let [stdout, stderr] = ["", ""];
    const stop = stopper(child, isInteractive);
    const fail = (reason: unknown) => {
      reject(reason);
      stop.gently();
    };
    const onAbort = () => fail(signal.reason);
    const forget = () => {
      stop.cancel();
      signal.removeEventListener("abort", onAbort);
      process.removeListener("exit", stop.now);
    };
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    process.once("exit", stop.now);
    child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
      stdout += chunk;
      if (stdout.length > MAX_OUTPUT_BYTES) fail(new Error("printed more than 1 MiB"));
    });
    child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
      stderr = `${stderr}${chunk}`.slice(-MAX_MESSAGE_LENGTH);
    });
    child.once("error", (cause) => {
      forget();
      reject(new Error(`cannot be run: ${cause.message}`, { cause }));
    });
    child.once("close", (code, ending) => {
      forget();
      if (code === 0) return resolve(stdout);
      const result = code === null ? `was ended by ${ending}` : `exited with code ${code}`;
      const message = stderr.trim();
      reject(new Error(message === "" ? result : `${result}: ${message}`));
    });
  });
}

function stopper(child: ChildProcess, isInteractive: boolean) {
  const { pid } = child;
  let pids: readonly number[] = [];
  let timer: NodeJS.Timeout | undefined;
  const kill = (signal: NodeJS.Signals) => {
    if (pid === undefined) return;
    // Looked up only once: the child processes of a process that has ended can no longer be found.
    if (pids.length === 0) pids = isInteractive ? [pid, ...descendantsOf(pid)] : [-pid];
    for (const each of pids) killProcess(each, signal);
  };
  const now = () => kill("SIGKILL");
  const gently = () => {
    if (timer) return;
    kill("SIGTERM");
    timer = setTimeout(() => {
      now();
      // A process that was not found can keep the output open.
      child.stdout?.destroy();
      child.stderr?.destroy();
    }, KILL_AFTER_MS);
  };
  return { now, gently, cancel: () => clearTimeout(timer) };
}

/** Returns no process where `ps` is not installed. */
function descendantsOf(pid: number): number[] {
  const { stdout } = spawnSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" });
  const processes = (stdout ?? "").split("\n").map((line) => line.trim().split(/ +/).map(Number));
  const below = (parent: number): number[] =>
    processes.flatMap(([id = 0, ofParent]) => (ofParent === parent ? [id, ...below(id)] : []));
  return below(pid);
}

function killProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // The process has already ended.
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}
