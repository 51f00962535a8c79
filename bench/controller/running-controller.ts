import { waitFor } from "@pipe-scaling/local-cluster/wait";
import * as z from "zod";
import { RECORDS_NAMESPACE } from "../../deploy/chart/install.ts";
import type { ResizeStrategy } from "../../src/domain/resize-strategy.ts";
import { MeasuredProcess } from "./measured-process.ts";
import { type ControllerWorld, PIPES } from "./world.ts";

/** Everything is on: metrics, and a log line for each step, written to a pipe. */
const ARGS = [
  ...["controller", "--ops-port", "0", "--log-level", "info"],
  ...["--namespace", RECORDS_NAMESPACE, "--pipe-namespaces", PIPES],
  // Rollouts that never complete must not fail during a measurement.
  ...["--rollout-timeout", "24h"],
];

const TIMEOUT_MS = 120_000;

/** A log line with the time at which a step ended. */
const lineSchema = z.object({ msg: z.enum(["leading", "resize", "resize-pod"]), time: z.iso.datetime() });

/** The bundled controller in a separate process. */
export class RunningController {
  readonly process: MeasuredProcess;
  /** Time of each resize according to the controller's log, in milliseconds since 1970. */
  readonly #givenAtMs: number[] = [];
  #ledAtMs: number | undefined;
  #firstPodAtMs: number | undefined;

  private constructor(world: ControllerWorld, program: string, strategy: ResizeStrategy) {
    const args = [...ARGS, "--resize-strategy", strategy, "--kubeconfig", world.kubeconfig];
    const options = { name: "controller", file: program, args };
    this.process = new MeasuredProcess(world, options, (line) => this.#read(line));
  }

  /**
   * Resolves once the caches are filled and the lease is acquired.
   *
   * @param strategy by default rollouts, because most pipes of the benchmark have no pods that could be resized
   */
  static async start(
    world: ControllerWorld,
    program: string,
    strategy: ResizeStrategy = "Rollout",
  ): Promise<RunningController> {
    const controller = new RunningController(world, program, strategy);
    await controller.#wait(() => controller.#ledAtMs, "lead");
    return controller;
  }

  /** Time from spawn until the caches were filled and the lease was acquired. */
  get startMs(): number {
    return (this.#ledAtMs ?? Number.NaN) - this.process.spawnedAtMs;
  }

  /** Number of resizes so far. */
  get given(): number {
    return this.#givenAtMs.length;
  }

  /** Waits for this number of resizes and returns the time of the last. */
  givenAtMs(count: number): Promise<number> {
    return this.#wait(() => this.#givenAtMs[count - 1], `resize ${count} pipes`);
  }

  /** Waits for the first resize of a pod in place and returns its time. */
  firstPodAtMs(): Promise<number> {
    return this.#wait(() => this.#firstPodAtMs, "resize a pod");
  }

  /** Ends the process, which releases its lease. */
  stop(): Promise<void> {
    return this.process.stop();
  }

  #wait(look: () => number | undefined, what: string): Promise<number> {
    const { signal } = this.process;
    return waitFor(look, { what: `the controller to ${what}`, timeoutMs: TIMEOUT_MS, signal });
  }

  #read(line: string): void {
    const parsed = lineSchema.safeParse(JSON.parse(line));
    if (!parsed.success) return;
    const at = Date.parse(parsed.data.time);
    if (parsed.data.msg === "leading") this.#ledAtMs = at;
    else if (parsed.data.msg === "resize") this.#givenAtMs.push(at);
    else this.#firstPodAtMs ??= at;
  }
}
