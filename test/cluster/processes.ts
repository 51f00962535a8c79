import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { sep } from "node:path";
import { z } from "zod";

export interface RunningProgram {
  readonly pid: number;
  /** The path the program was started by (its argument zero). */
  readonly program: string;
}

/**
 * Every live process that was started by a path inside a folder.
 *
 * Each cluster's programs are started by links in its own folder, so this finds
 * all of them, also those whose id was never written down, and never a stranger
 * that was given the id of one that has died. Zombies do not count.
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
  return readdirSync("/proc").flatMap((entry) => {
    if (!/^\d+$/.test(entry)) return [];
    const program = readProc(`/proc/${entry}/cmdline`)?.split("\0", 1)[0];
    return program ? [{ pid: Number(entry), program }] : [];
  });
}

/** Identifies a process. Its number alone does not: the system reuses it. */
export const processIdentitySchema = z.object({
  pid: z.number().int().positive(),
  /** When it started, in whatever form the system tells it. */
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

/**
 * Tells if that very process still runs. "unknown": it belongs to another
 * machine or container that shares our folder, and cannot be seen from here.
 */
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
  const stat = readProc(`/proc/${pid}/stat`);
  // The second field is the program's name and may hold spaces and brackets: read from its end.
  const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, started] = [fields?.[0], fields?.[19]];
  return state === "Z" || state === "X" ? undefined : started;
}

function readProc(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // The process ended between being listed and being read.
    return undefined;
  }
}

function ps(args: readonly string[]): string[] {
  try {
    const output = execFileSync("ps", args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    return output.split("\n").filter((line) => line.trim() !== "");
  } catch {
    // ps exits with 1 when no process matches.
    return [];
  }
}

/**
 * Kills everything that was started from a folder and returns when none of it is
 * left. Synchronous, because it also runs while this process exits.
 *
 * Starters go as well as what they start, so what is found can only shrink; the
 * negative id takes the children of a group's leader along.
 */
export function killProgramsRunFrom(folder: string): void {
  const deadline = Date.now() + 10_000;
  for (let found = programsRunFrom(folder); found.length > 0; found = programsRunFrom(folder)) {
    if (Date.now() > deadline) {
      const names = found.map(({ pid, program }) => `${program} (${pid})`).join(", ");
      throw new Error(`these processes do not die when killed: ${names}`);
    }
    for (const { pid } of found) {
      // Minus: the whole group that it leads, if it leads one.
      if (!kill(-pid)) kill(pid);
    }
    pause(5);
  }
}

function kill(pid: number): boolean {
  try {
    return process.kill(pid, "SIGKILL");
  } catch {
    // It is gone already, or leads no group.
    return false;
  }
}

function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
