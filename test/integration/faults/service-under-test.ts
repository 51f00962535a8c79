import type { PipeScalingSpec } from "../../../src/crd/pipe-scaling.ts";
import { CONFIG_MAPS, objectPath } from "../../../src/kube/paths.ts";
import type { TestEnvironment } from "../../support/test-environment.ts";
import type { Invariants } from "./invariants.ts";

const DEFAULT_CORES = { basic: 1, scale: 2, enterprise: 2 } as const;
export type TierName = keyof typeof DEFAULT_CORES;
export const TIER_NAMES: readonly TierName[] = ["basic", "scale", "enterprise"];

/** Something that somebody does. It rejects if the API server is down or refuses it. */
export type Operation = () => Promise<unknown>;

/** A service that random operations are about: its pipes, its tier, and the dice. */
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

  /** A whole number from 0 to below the limit. */
  below(limit: number): number {
    return Math.floor(this.random() * limit);
  }

  pick<T>(choices: readonly [T, ...T[]]): T {
    return choices[this.below(choices.length)] ?? choices[0];
  }

  /** To be called before a size is asked for, by whatever means. */
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

  /** Does it with one of the pipes, if there is one. */
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
