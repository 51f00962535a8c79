import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

const LISTEN = "0A";

/** The local TCP addresses that processes listen on, in the format of the system, such as "0100007F:1F90". */
export function listeningAddresses(pids: readonly number[]): string[] {
  if (process.platform !== "linux") return pids.flatMap(lsof);
  const inodes = new Set(pids.flatMap(socketsOf));
  return ["/proc/net/tcp", "/proc/net/tcp6"].flatMap((table) =>
    readFileSync(table, "utf8")
      .trim()
      .split("\n")
      .slice(1)
      .map((line) => line.trim().split(/\s+/))
      .filter(([, , , state, , , , , , inode]) => state === LISTEN && inode && inodes.has(inode))
      .map(([, address]) => address ?? ""),
  );
}

/** True for 127.0.0.1, which every component is configured to use. */
export function isLoopback(address: string): boolean {
  return /^0100007F:/.test(address) || address.startsWith("127.0.0.1:");
}

function socketsOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? [];
    } catch {
      // The descriptor was closed meanwhile.
      return [];
    }
  });
}

function lsof(pid: number): string[] {
  const output = execFileSync("lsof", ["-nP", "-a", "-p", String(pid), "-iTCP", "-sTCP:LISTEN", "-Fn"], {
    encoding: "utf8",
  });
  return output
    .split("\n")
    .filter((line) => line.startsWith("n"))
    .map((line) => line.slice(1));
}
