import { waitFor } from "@pipe-scaling/local-cluster/wait";
import * as z from "zod";
import { MeasuredProcess } from "./measured-process.ts";
import { BASELINE_PIPES, type ControllerWorld } from "./world.ts";
import type { Rescale } from "./writes.ts";

const lineSchema = z.object({ msg: z.enum(["ready", "sized", "rescaled"]), time: z.iso.datetime() });

const TIMEOUT_MS = 120_000;

/** The process that makes only the writes of the controller (writes.ts). */
export class WritingLoop {
  readonly process: MeasuredProcess;
  readonly #times = new Map<string, number>();

  private constructor(world: ControllerWorld, program: string) {
    const options = { name: "writes", file: program, args: [world.kubeconfig, BASELINE_PIPES] };
    this.process = new MeasuredProcess(world, options, (line) => {
      const { msg, time } = lineSchema.parse(JSON.parse(line));
      this.#times.set(msg, Date.parse(time));
    });
  }

  static async start(world: ControllerWorld, program: string): Promise<WritingLoop> {
    const loop = new WritingLoop(world, program);
    await loop.#hear("ready");
    return loop;
  }

  /** @returns the time at which the last pipe had its size, in milliseconds since 1970 */
  async rescale(cores: number): Promise<number> {
    this.#times.clear();
    const order: Rescale = { cores };
    this.process.send(order);
    await this.#hear("rescaled");
    return this.#hear("sized");
  }

  #hear(msg: string): Promise<number> {
    const { signal } = this.process;
    const what = `the loop of writes to say "${msg}"`;
    return waitFor(() => this.#times.get(msg), { what, timeoutMs: TIMEOUT_MS, signal });
  }
}
