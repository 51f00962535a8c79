import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { sep } from "node:path";
import { z } from "zod";
import { environment } from "./environment.ts";

export interface RunningProgram {
  readonly pid: number;
  /** The path with which it was started (argument 0). */
  readonly program: string;
}

/**
 * All running processes whose program is in a folder.
 *
 * The programs of a cluster are started through links in its folder, so this finds all of them, including those whose
 * ID was never stored, and no other process that got the ID of one that has ended. Zombies do not count.
 */
export function programsRunFrom(folder: string): RunningProgram[] {
  const prefix = folder + sep;
  return allPrograms().filter(({ program }) => program.startsWith(prefix));
}

function allPrograms(): RunningProgram[] {
  if (process.platform !== "linux") {
    return ps(["-axww", "-o", "pid=,command="]).flatMap((line) => {
      const match = /^\s*(\d+)\s+(.*)$/.exec(line);
      return match?.[1] && match[2] ? [{ pid: Number(match[1]), program: match[2] }] : [];
    });
  }
  return pids().flatMap((pid) => {
    const program = readProc(`/proc/${pid}/cmdline`)?.split("\0", 1)[0];
    return program ? [{ pid, program }] : [];
  });
}

/** Identifies a process. Its ID is not enough, because the system reuses IDs. */
export const processIdentitySchema = z.object({
  pid: z.number().int().positive(),
  /** Start time, in the format of the system. */
  started: z.string(),
  /** The machine, its boot and its process namespace (a container has its own). */
  host: z.string(),
  boot: z.string(),
  namespace: z.string(),
});
export type ProcessIdentity = z.infer<typeof processIdentitySchema>;

export function thisProcess(): ProcessIdentity {
  return { pid: process.pid, started: startOf(process.pid) ?? "", ...here() };
}

/** The state of a process; "unknown" if it belongs to another machine or container that shares our folder. */
export function stateOf(identity: ProcessIdentity): "running" | "gone" | "unknown" {
  const us = here();
  if (identity.host !== us.host) return "unknown";
  if (identity.boot !== us.boot) return "gone";
  if (identity.namespace !== us.namespace) return "unknown";
  return startOf(identity.pid) === identity.started ? "running" : "gone";
}

function here(): Pick<ProcessIdentity, "host" | "boot" | "namespace"> {
  if (process.platform !== "linux") return { host: hostname(), boot: "", namespace: "" };
  return {
    host: hostname(),
    boot: readProc("/proc/sys/kernel/random/boot_id")?.trim() ?? "",
    namespace: readlinkSync("/proc/self/ns/pid"),
  };
}

function startOf(pid: number): string | undefined {
  if (process.platform !== "linux") return ps(["-o", "lstart=", "-p", String(pid)])[0]?.trim();
  return statOf(pid)?.started;
}

/** From /proc on Linux; undefined if the process has ended, even if it is still a zombie. */
function statOf(pid: number): { readonly parent: number; readonly started: string | undefined } | undefined {
  const stat = readProc(`/proc/${pid}/stat`);
  // The second field is the name of the program, which can contain spaces and parentheses, so read from its end.
  const [state, parent, ...others] = stat?.slice(stat.lastIndexOf(")") + 2).split(" ") ?? [];
  if (state === undefined || state === "Z" || state === "X") return undefined;
  return { parent: Number(parent), started: others[17] };
}

function children(): number[] {
  if (process.platform === "linux") return pids().filter((pid) => statOf(pid)?.parent === process.pid);
  return ps(["-axo", "pid=,ppid=,state=,comm="]).flatMap((line) => {
    const [pid, parent, state = "", program = ""] = line.trim().split(/\s+/);
    const isChild = Number(parent) === process.pid && !state.startsWith("Z") && !/(^|\/)ps$/.test(program);
    return isChild ? [Number(pid)] : [];
  });
}

function pids(): number[] {
  return readdirSync("/proc").flatMap((entry) => (/^\d+$/.test(entry) ? [Number(entry)] : []));
}

function readProc(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // The process has ended meanwhile.
    return undefined;
  }
}

function ps(args: readonly string[]): string[] {
  try {
    const output = execFileSync("ps", args, {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
      // Every process must read the same start time, whatever its language and time zone.
      env: { PATH: environment["PATH"], LC_ALL: "C", TZ: "UTC" },
      maxBuffer: Infinity,
    });
    return output.split("\n").filter((line) => line.trim() !== "");
  } catch (error) {
    if (isNoMatch(error)) return [];
    throw error;
  }
}

/** True if ps has found no process. */
function isNoMatch(error: unknown): boolean {
  return error instanceof Error && "status" in error && error.status === 1;
}

/**
 * Kills all processes whose program is in a folder, and their process groups, and returns when they have ended. It is
 * synchronous, because it also runs while this process exits.
 */
export function killProgramsRunFrom(folder: string): void {
  killAll(() => programsRunFrom(folder).map(({ pid }) => pid));
}

/** Kills all child processes of this process in the same way. */
export function killChildren(): void {
  killAll(children);
}

function killAll(find: () => readonly number[]): void {
  const deadline = Date.now() + 10_000;
  for (let found = find(); found.length > 0; found = find()) {
    if (Date.now() > deadline) {
      throw new Error(`these processes are still running 10 s after SIGKILL: ${found.join(", ")}`);
    }
    for (const pid of found) {
      // A negative ID is the process group that it leads, if it leads one.
      if (!kill(-pid)) kill(pid);
    }
    pause(5);
  }
}

function kill(pid: number): boolean {
  try {
    return process.kill(pid, "SIGKILL");
  } catch {
    // The process has ended, or leads no group.
    return false;
  }
}

function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
