import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Cluster } from "../../test/cluster/cluster.ts";
import { startChild } from "../child.ts";
import type { Job, JobDone } from "./load.ts";

/** The process that asks (load.ts): it has a core of its own, where there are two. */
export class LoadGenerator {
  readonly #child: ChildProcess;
  readonly #ended: Promise<never>;

  constructor(cluster: Cluster) {
    const file = fileURLToPath(new URL("load.ts", import.meta.url));
    this.#child = startChild(cluster, { name: "load", file });
    this.#child.stdout?.resume();
    this.#child.stderr?.pipe(process.stderr);
    this.#ended = once(this.#child, "exit").then(() => {
      throw new Error("the load generator ended in the middle of a measurement");
    });
    // It also ends with the cluster, when nobody waits for it any more.
    this.#ended.catch(() => undefined);
  }

  /** One job at a time. */
  async run(job: Job): Promise<JobDone> {
    const done = once(this.#child, "message").then(([answer]): JobDone => answer);
    this.#child.send(job);
    return Promise.race([done, this.#ended]);
  }
}
