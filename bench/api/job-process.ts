import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { startChild } from "../child.ts";

/** A separate process that executes one job at a time: it receives a job and sends back the result. */
export class JobProcess<Job extends object, Result> {
  readonly #child: ChildProcess;
  readonly #ended: Promise<never>;

  /** @param module file of the program in this folder */
  constructor(cluster: Cluster, name: string, module: string) {
    const file = fileURLToPath(new URL(module, import.meta.url));
    this.#child = startChild(cluster, { name, file });
    this.#child.stdout?.resume();
    this.#child.stderr?.pipe(process.stderr);
    this.#ended = once(this.#child, "exit").then(() => {
      throw new Error(`the process ${name} ended in the middle of a measurement`);
    });
    // Without a job in progress, it also ends with the cluster.
    this.#ended.catch(() => undefined);
  }

  async run(job: Job): Promise<Result> {
    const done = once(this.#child, "message").then(([result]): Result => result);
    this.#child.send(job);
    return Promise.race([done, this.#ended]);
  }
}
