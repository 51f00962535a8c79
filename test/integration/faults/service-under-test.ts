import type { PipeScalingSpec } from "../../../src/crd/pipe-scaling.ts";
import { CONFIG_MAPS, objectPath } from "../../../src/kube/paths.ts";
import type { TestEnvironment } from "../../support/test-environment.ts";
import type { Invariants } from "./invariants.ts";

const DEFAULT_CORES = { basic: 1, scale: 2, enterprise: 2 } as const;
export type TierName = keyof typeof DEFAULT_CORES;
export const TIER_NAMES: readonly TierName[] = ["basic", "scale", "enterprise"];

/** An operation on the cluster. It rejects if the API server is down or rejects it. */
export type Operation = () => Promise<unknown>;

/** A service for random operations: its pipes, its tier, and the random numbers. */
export class ServiceUnderTest {
  readonly environment: TestEnvironment;
  readonly random: () => number;
  /** Names of its pipes. */
  readonly pipes = new Set<string>();
  tier: TierName = "basic";
  readonly #invariants: Invariants;

  constructor(environment: TestEnvironment, invariants: Invariants, random: () => number) {
    this.environment = environment;
    this.#invariants = invariants;
    this.random = random;
  }

  /** Returns a random integer from 0 (inclusive) to `limit` (exclusive). */
  below(limit: number): number {
    return Math.floor(this.random() * limit);
  }

  pick<T>(choices: readonly [T, ...T[]]): T {
    return choices[this.below(choices.length)] ?? choices[0];
  }

  /** Call it before a size is requested in any way. */
  accept(cores: number): void {
    this.#invariants.accept(cores, this.environment.serviceId);
  }

  acceptDefault(tier = this.tier): void {
    this.accept(DEFAULT_CORES[tier]);
  }

  acceptSpec({ replicaCpuMillicores: millicores }: PipeScalingSpec = {}): void {
    if (millicores === undefined) this.acceptDefault();
    else this.accept(millicores / 1000);
  }

  /** Executes an operation on a random pipe, if there is one. */
  async withPipe(operation: (name: string) => Promise<unknown>): Promise<void> {
    const name = [...this.pipes][this.below(this.pipes.size)];
    if (name !== undefined) await operation(name);
  }

  async patchOrganization(data: object): Promise<void> {
    const { client, records, organizationName } = this.environment;
    await client.json({
      method: "PATCH",
      path: objectPath(CONFIG_MAPS, records, organizationName),
      patchType: "application/merge-patch+json",
      body: { data },
    });
  }
}
