import { RETRY_ANNOTATION } from "../../../src/controller/names.ts";
import { API_VERSION, KIND, PIPE_SCALINGS } from "../../../src/crd/names.ts";
import type { PipeScalingSpec } from "../../../src/crd/pipe-scaling.ts";
import { isCode } from "../../../src/kube/errors.ts";
import { CONFIG_MAPS, collectionPath, DEPLOYMENTS, objectPath } from "../../../src/kube/paths.ts";
import type { TestEnvironment } from "../../support/test-environment.ts";
import type { Kinds } from "./history.ts";
import type { Invariants } from "./invariants.ts";

const DEFAULT_CORES = { basic: 1, scale: 2, enterprise: 2 } as const;
export type TierName = keyof typeof DEFAULT_CORES;
export const TIER_NAMES: readonly TierName[] = ["basic", "scale", "enterprise"];

/** A service for random operations: its pipes, its tier, its requests, and the random numbers. */
export class ServiceUnderTest {
  readonly environment: TestEnvironment;
  readonly random: () => number;
  /** Names of its pipes. */
  readonly pipes = new Set<string>();
  tier: TierName = "basic";
  /** Functions that end the obstacles of operations. */
  readonly #endings: (() => Promise<unknown>)[] = [];
  readonly #invariants: Invariants;
  /** The requested sizes; `null` for the default. */
  #requested: readonly (number | null)[] = [null, null];

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

  /** Returns a random size in cores. */
  anySize(): number {
    return 1 + this.below(8);
  }

  /** The size that was requested last. */
  get requested(): number | null {
    return this.#requested.at(-1) ?? null;
  }

  /** The size before it, which may still be in progress. */
  get requestedBefore(): number | null {
    return this.#requested.at(-2) ?? null;
  }

  /** @param cores `null` for the default of the tier. @param more other fields of the spec in the same write */
  async request(cores: number | null, more: object = {}): Promise<void> {
    this.#requested = [this.requested, cores];
    if (cores === null) this.acceptDefault();
    else this.accept(cores);
    await this.environment.patchScaling(specOf(cores, more));
  }

  /** Like `kubectl apply`: creates the PipeScaling if there is none. */
  async apply(cores: number | null, more: object = {}): Promise<void> {
    try {
      await this.request(cores, more);
    } catch (error) {
      if (!isCode(error, 404)) throw error;
      const { client, pipes, serviceId } = this.environment;
      const fields = Object.entries(specOf(cores, more)).filter(([, value]) => value !== null);
      const body = { apiVersion: API_VERSION, kind: KIND, metadata: { name: serviceId } };
      await client.json({
        method: "POST",
        path: collectionPath(PIPE_SCALINGS, pipes),
        body: { ...body, spec: Object.fromEntries(fields) },
      });
    }
  }

  async requestRetry(): Promise<void> {
    await this.environment.patchScaling(undefined, { [RETRY_ANNOTATION]: new Date().toISOString() });
  }

  /** Registers how obstacles end that would keep the service from becoming ready. */
  onCalm(end: () => Promise<unknown>): void {
    this.#endings.push(end);
  }

  /** Ends obstacles, repairs the record, and requests the last size again. Rejects if the API server is down. */
  async calm(more: object): Promise<void> {
    for (const end of this.#endings) await end();
    await this.patchOrganization({ tier: this.tier });
    await this.apply(this.requested, more);
  }

  /** Call it before a size is requested without `request`. */
  accept(cores: number): void {
    this.#invariants.accept(cores, this.environment.serviceId);
  }

  /** Call it when the API server refuses larger sizes from now on, and before that ends, with `undefined`. */
  limit(mostCores: number | undefined): void {
    this.#invariants.limit(mostCores, this.environment.serviceId);
  }

  acceptDefault(tier = this.tier): void {
    this.accept(DEFAULT_CORES[tier]);
  }

  acceptSpec({ replicaCpuMillicores: millicores }: PipeScalingSpec = {}): void {
    if (millicores === undefined) this.acceptDefault();
    else this.accept(millicores / 1000);
  }

  /** Resolves to true when the controller makes its next write of a resize in place to this kind, or else to false. */
  sees(kind: "Pod" | "ReplicaSet" | "Deployment", timeoutMs: number): Promise<boolean> {
    return this.#invariants.seesResize(kind, timeoutMs);
  }

  /** Executes an operation on a random pipe. Returns false if there is none. */
  withPipe(operation: (name: string) => Promise<unknown>): Promise<unknown> {
    const name = [...this.pipes][this.below(this.pipes.size)];
    return name === undefined ? Promise.resolve(false) : operation(name);
  }

  /** All Deployments of its namespace, in the order of their names. */
  async deployments(): Promise<readonly Kinds["Deployment"][]> {
    const { client, pipes } = this.environment;
    const path = collectionPath(DEPLOYMENTS, pipes);
    return (await client.json<{ readonly items: readonly Kinds["Deployment"][] }>({ path })).items;
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

function specOf(cores: number | null, more: object): object {
  return {
    replicaCpuMillicores: cores === null ? null : cores * 1000,
    replicaMemoryGb: cores === null ? null : cores * 4,
    ...more,
  };
}
