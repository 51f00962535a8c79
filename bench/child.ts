import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import type { Readable } from "node:stream";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { environment } from "@pipe-scaling/local-cluster/environment";

export interface ChildOptions {
  /** Name among the processes of the cluster. */
  readonly name: string;
  /** Path of the program. */
  readonly file: string;
  readonly args?: readonly string[];
  /** Options of Node. */
  readonly nodeArgs?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Starts a Node process of a benchmark, with a channel for messages. Its two outputs are pipes that the caller must
 * read.
 *
 * The process belongs to the cluster, so the removal of the cluster ends it too, however the benchmark ends.
 */
export function startChild(cluster: Cluster, options: ChildOptions): ChildProcess {
  const { name, file, args = [], nodeArgs = [], env = {} } = options;
  return spawn(process.execPath, [...nodeArgs, file, ...args], {
    argv0: join(cluster.dir, "bin", `bench-${name}`),
    env: { ...ownEnvironment(), ...env },
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
}

/** Returns the environment without variables that name another cluster, or set options of Node or of the program. */
function ownEnvironment() {
  return Object.fromEntries(
    Object.entries(environment).filter(
      ([name]) => name !== "KUBECONFIG" && name !== "NODE_OPTIONS" && !name.startsWith("PIPE_SCALING_"),
    ),
  );
}

/**
 * Waits until a process has printed something on a stream. Afterwards the stream is read and discarded, so that the
 * process never waits for a reader.
 *
 * @param find extracts the result from the text so far
 */
export function waitForOutput<T>(stream: Readable | null, find: (text: string) => T | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    let text = "";
    const look = (chunk: Buffer) => {
      text += chunk.toString();
      const found = find(text);
      if (found === undefined) return;
      stream?.off("data", look);
      stream?.resume();
      resolve(found);
    };
    stream?.on("data", look);
    stream?.once("end", () => reject(new Error(`a process of the benchmark ended, and printed: ${text}`)));
  });
}
