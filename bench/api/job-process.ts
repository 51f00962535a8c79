import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { startChild } from "../child.ts";

/** A process of its own that executes jobs, one at a time: it is sent each job, and sends back its result. */
export class JobProcess<Job extends object, Result> {
  readonly #child: ChildProcess;
  readonly #ended: Promise<never>;

  /** @param module its program, in this folder */
  constructor(cluster: Cluster, name: string, module: string) {
    const file = fileURLToPath(new URL(module, import.meta.url));
    this.#child = startChild(cluster, { name, file });
    this.#child.stdout?.resume();
    this.#child.stderr?.pipe(process.stderr);
    this.#ended = once(this.#child, "exit").then(() => {
      throw new Error(`the process ${name} ended in the middle of a measurement`);
    });
    // It also ends with the cluster, when no job is in progress.
    this.#ended.catch(() => undefined);
  }

  async run(job: Job): Promise<Result> {
    const done = once(this.#child, "message").then(([result]): Result => result);
    this.#child.send(job);
    return Promise.race([done, this.#ended]);
  }
}
