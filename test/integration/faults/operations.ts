import { RETRY_ANNOTATION } from "../../../src/controller/names.ts";
import { PIPE_SCALINGS } from "../../../src/crd/names.ts";
import { KubeApiError, KubeUnreachableError } from "../../../src/kube/errors.ts";
import { CONFIG_MAPS, DEPLOYMENTS, objectPath } from "../../../src/kube/paths.ts";
import type { World } from "../world.ts";
import type { Invariants } from "./invariants.ts";

const DEFAULT_CORES = { basic: 1, scale: 2, enterprise: 2 } as const;
type TierName = keyof typeof DEFAULT_CORES;
const TIER_NAMES: readonly TierName[] = ["basic", "scale", "enterprise"];

const FEWEST_PIPES = 3;
const MOST_PIPES = 7;

/** What people and other programs do to a service while its pipes are sized, chosen at random. */
export class Operations {
  readonly #world: World;
  readonly #invariants: Invariants;
  readonly #random: () => number;
  #pipes: string[] = [];
  #made = 0;
  #tier: TierName = "basic";

  constructor(world: World, invariants: Invariants, random: () => number) {
    this.#world = world;
    this.#invariants = invariants;
    this.#random = random;
  }

  /** One of them. Without an API server, or where it refuses, nothing happens. */
  async any(): Promise<void> {
    const operations = [
      this.#ask,
      this.#ask,
      this.#ask,
      this.#askForDefault,
      this.#changeTier,
      this.#addPipe,
      this.#removePipe,
      this.#suspend,
      this.#resume,
      this.#resume,
      this.#deleteScaling,
      this.#spoilRecord,
      this.#repairRecord,
      this.#repairRecord,
      this.#writeOverSize,
      this.#askAgain,
      this.#annotatePipe,
      this.#changeImage,
      this.#scale,
    ];
    const operation = operations[this.#below(operations.length)] ?? this.#ask;
    await this.#ifPossible(() => operation.call(this));
  }

  /** Undoes what stands in the way, and asks for a size; throws while there is no API server. */
  async conclude(cores: number): Promise<void> {
    await this.#patchRecord({ tier: this.#tier });
    this.#invariants.accept(cores);
    await this.#world.askFor(cores);
    await this.#world.patchScaling({ suspend: null });
  }

  async addPipes(count: number): Promise<void> {
    for (let index = 0; index < count; index++) await this.#addPipe();
  }

  async #ifPossible(operation: () => Promise<unknown>): Promise<void> {
    try {
      await operation();
    } catch (error) {
      const isRefused = [KubeApiError, KubeUnreachableError].some((each) => error instanceof each);
      if (!isRefused) throw error;
    }
  }

  async #ask(): Promise<void> {
    const cores = 1 + this.#below(8);
    this.#invariants.accept(cores);
    await this.#world.askFor(cores);
  }

  async #askForDefault(): Promise<void> {
    this.#invariants.accept(DEFAULT_CORES[this.#tier]);
    await this.#world.askFor(null);
  }

  async #changeTier(): Promise<void> {
    const tier = TIER_NAMES[this.#below(TIER_NAMES.length)] ?? "basic";
    this.#invariants.accept(DEFAULT_CORES[tier]);
    await this.#patchRecord({ tier });
    this.#tier = tier;
  }

  async #addPipe(): Promise<void> {
    if (this.#pipes.length >= MOST_PIPES) return;
    this.#made += 1;
    const name = `pipe-${this.#made}`;
    await this.#world.createPipe({ name, cores: 1 + this.#below(3), replicas: this.#below(3) });
    this.#pipes.push(name);
  }

  async #removePipe(): Promise<void> {
    const name = this.#anyPipe();
    if (name === undefined || this.#pipes.length <= FEWEST_PIPES) return;
    await this.#delete(objectPath(DEPLOYMENTS, this.#world.pipes, name));
    this.#pipes = this.#pipes.filter((each) => each !== name);
  }

  async #suspend(): Promise<void> {
    await this.#world.patchScaling({ suspend: true });
  }

  async #resume(): Promise<void> {
    await this.#world.patchScaling({ suspend: null });
  }

  async #deleteScaling(): Promise<void> {
    await this.#delete(objectPath(PIPE_SCALINGS, this.#world.pipes, this.#world.serviceId));
  }

  async #spoilRecord(): Promise<void> {
    await this.#patchRecord({ tier: null });
  }

  async #repairRecord(): Promise<void> {
    await this.#patchRecord({ tier: this.#tier });
  }

  async #writeOverSize(): Promise<void> {
    const name = this.#anyPipe();
    if (name === undefined) return;
    const resources = { requests: { cpu: `${1 + this.#below(8)}` } };
    await this.#world.patchPipe(name, {
      spec: { template: { spec: { containers: [{ name: "pipe", resources }] } } },
    });
  }

  async #annotatePipe(): Promise<void> {
    const name = this.#anyPipe();
    if (name === undefined) return;
    await this.#world.patchPipe(name, { metadata: { annotations: { note: `${this.#random()}` } } });
  }

  async #changeImage(): Promise<void> {
    const name = this.#anyPipe();
    if (name === undefined) return;
    const image = `registry.example/pipe:${this.#below(5)}`;
    await this.#world.patchPipe(name, {
      spec: { template: { spec: { containers: [{ name: "pipe", image }] } } },
    });
  }

  async #scale(): Promise<void> {
    const name = this.#anyPipe();
    if (name === undefined) return;
    await this.#world.patchPipe(name, { spec: { replicas: this.#below(3) } });
  }

  async #askAgain(): Promise<void> {
    await this.#world.patchScaling(undefined, { [RETRY_ANNOTATION]: new Date().toISOString() });
  }

  async #patchRecord(data: object): Promise<void> {
    await this.#world.client.json({
      method: "PATCH",
      path: objectPath(CONFIG_MAPS, this.#world.records, this.#world.organizationName),
      patchType: "application/merge-patch+json",
      body: { data },
    });
  }

  async #delete(path: string): Promise<void> {
    await this.#world.client.json({ method: "DELETE", path });
  }

  #anyPipe(): string | undefined {
    return this.#pipes[this.#below(this.#pipes.length)];
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }
}
