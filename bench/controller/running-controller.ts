import { waitFor } from "@pipe-scaling/local-cluster/wait";
import * as z from "zod";
import { RECORDS_NAMESPACE } from "../../deploy/chart/install.ts";
import { MeasuredProcess } from "./measured-process.ts";
import { type ControllerWorld, PIPES } from "./world.ts";

/** Everything on: metrics, a log line at info for each step, to a pipe. */
const ARGS = [
  ...["controller", "--ops-port", "0", "--log-level", "info"],
  ...["--namespace", RECORDS_NAMESPACE, "--pipe-namespaces", PIPES],
  // Rollouts that never complete are not to fail while something is measured.
  ...["--rollout-timeout", "24h"],
];

const TIMEOUT_MS = 120_000;

/** A line of its log that says when it was done with something. */
const lineSchema = z.object({ msg: z.enum(["leading", "resize"]), time: z.iso.datetime() });

/** The controller as it is shipped, in a process of its own. */
export class RunningController {
  readonly process: MeasuredProcess;
  /** When each pipe was given a size, in milliseconds since 1970, by the controller's own log. */
  readonly #givenAtMs: number[] = [];
  #ledAtMs: number | undefined;

  private constructor(world: ControllerWorld, program: string) {
    const options = { name: "controller", file: program, args: [...ARGS, "--kubeconfig", world.kubeconfig] };
    this.process = new MeasuredProcess(world, options, (line) => this.#read(line));
  }

  /** Resolves once it has filled its caches and taken the lease. */
  static async start(world: ControllerWorld, program: string): Promise<RunningController> {
    const controller = new RunningController(world, program);
    await controller.#wait(() => controller.#ledAtMs, "lead");
    return controller;
  }

  /** From spawn until it had filled its caches and taken the lease. */
  get startMs(): number {
    return (this.#ledAtMs ?? Number.NaN) - this.process.spawnedAtMs;
  }

  /** How many sizes it has given. */
  get given(): number {
    return this.#givenAtMs.length;
  }

  /** When it had given so many; waits for that. */
  givenAtMs(count: number): Promise<number> {
    return this.#wait(() => this.#givenAtMs[count - 1], `have given ${count} sizes`);
  }

  /** It gives its lease back. */
  stop(): Promise<void> {
    return this.process.stop();
  }

  #wait(look: () => number | undefined, what: string): Promise<number> {
    const { signal } = this.process;
    return waitFor(look, { what: `the controller to ${what}`, timeoutMs: TIMEOUT_MS, signal });
  }

  #read(line: string): void {
    const said = lineSchema.safeParse(JSON.parse(line));
    if (!said.success) return;
    const at = Date.parse(said.data.time);
    if (said.data.msg === "leading") this.#ledAtMs = at;
    else this.#givenAtMs.push(at);
  }
}
