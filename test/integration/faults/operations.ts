import { RESIZE_AFTER_ANNOTATION } from "@pipe-scaling/local-cluster/resize-stages";
import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../../src/controller/names.ts";
import { DEPLOYMENTS, objectPath } from "../../../src/kube/paths.ts";
import { ifPossible, type Operation, type OperationLog, type OtherWriters } from "./operation.ts";
import { type ServiceUnderTest, TIER_NAMES } from "./service-under-test.ts";
import { WindowOperations } from "./window-operations.ts";

const FEWEST_PIPES = 3;
const MOST_PIPES = 7;
/** Cores that the owner of a new pipe gives it. */
export const SIZES_OF_NEW_PIPES = [1, 2, 3] as const;
/** Maximum time that a resize of a pod takes. */
const RESIZE_MS = 4000;

/** Random operations of people and other programs on a service while its pipes are resized. */
export class Operations {
  readonly service: ServiceUnderTest;
  readonly #log: OperationLog;
  readonly #others: readonly OtherWriters[];
  readonly #operations: readonly Operation[];
  #made = 0;

  get serviceId() {
    return this.service.environment.serviceId;
  }

  constructor(service: ServiceUnderTest, log: OperationLog, others: readonly OtherWriters[] = []) {
    this.service = service;
    this.#log = log;
    this.#others = others;
    const own = [
      this.#changeTier,
      this.#addPipe,
      this.#removePipe,
      this.#spoilRecord,
      this.#repairRecord,
      this.#repairRecord,
      this.#repairRecord,
      this.#writeOverSize,
      this.#annotatePipe,
      this.#changeImage,
      this.#scale,
    ].map((operation) => operation.bind(this));
    const all = [...own, ...others.flatMap(({ operations }) => operations)];
    this.#operations = [...all, ...new WindowOperations(service, all).operations];
  }

  /** Executes a random operation, unless the API server is down or rejects it. */
  async any(): Promise<void> {
    const operation = this.#operations[this.service.below(this.#operations.length)] ?? this.#changeTier;
    const { pipes, serviceId } = this.service.environment;
    await this.#log.run(`${pipes} ${serviceId.slice(0, 4)}`, operation, ifPossible);
  }

  /** Removes all obstacles. @throws Error while the API server is down */
  async end(): Promise<void> {
    for (const other of this.#others) await other.end();
  }

  /** Requests a size, after the obstacles of all services have ended. @throws Error while the API server is down */
  async conclude(cores: number): Promise<void> {
    const { tier } = this.service;
    await this.service.patchOrganization({ tier });
    // With the strategy InPlace, some pipes would wait for a person.
    await this.service.apply(cores, { suspend: null, strategy: null });
  }

  get violations(): readonly string[] {
    return this.#others.flatMap(({ violations = [] }) => violations);
  }

  async addPipes(count: number): Promise<void> {
    for (let index = 0; index < count; index++) await this.#addPipe();
  }

  async #changeTier(): Promise<void> {
    const tier = TIER_NAMES[this.service.below(TIER_NAMES.length)] ?? "basic";
    this.service.acceptDefault(tier);
    await this.service.patchOrganization({ tier });
    this.service.tier = tier;
  }

  async #addPipe(): Promise<unknown> {
    const { environment, pipes } = this.service;
    if (pipes.size >= MOST_PIPES) return false;
    this.#made += 1;
    const name = `pipe-${environment.serviceId.slice(0, 4)}-${this.#made}`;
    const cores = this.service.pick(SIZES_OF_NEW_PIPES);
    // A pipe whose pods do not have its labels is never resized in place.
    const isLabeled = this.service.below(6) > 0;
    const podLabels = { [SERVICE_LABEL]: environment.serviceId, [TYPE_LABEL]: DATABASE_TYPE };
    const replicas = this.service.below(4);
    const resizeMs = this.service.below(RESIZE_MS);
    const isSlow = this.service.below(3) === 0;
    // Half of them stop their old pods first.
    const strategy = this.service.pick<"RollingUpdate" | "Recreate">(["RollingUpdate", "Recreate"]);
    const podAnnotations = isSlow ? { [RESIZE_AFTER_ANNOTATION]: `${resizeMs}ms` } : {};
    await environment.createPipe({
      name,
      cores,
      replicas,
      podAnnotations,
      strategy,
      ...(isLabeled ? { podLabels } : {}),
    });
    pipes.add(name);
    return name;
  }

  async #removePipe(): Promise<unknown> {
    const { environment, pipes } = this.service;
    if (pipes.size <= FEWEST_PIPES) return false;
    return this.service.withPipe(async (name) => {
      await environment.client.json({
        method: "DELETE",
        path: objectPath(DEPLOYMENTS, environment.pipes, name),
      });
      pipes.delete(name);
      return name;
    });
  }

  async #spoilRecord(): Promise<void> {
    await this.service.patchOrganization({ tier: null });
  }

  async #repairRecord(): Promise<void> {
    await this.service.patchOrganization({ tier: this.service.tier });
  }

  #writeOverSize(): Promise<unknown> {
    const resources = { requests: { cpu: `${this.service.anySize()}` } };
    return this.#patchAnyPipe({
      spec: { template: { spec: { containers: [{ name: "pipe", resources }] } } },
    });
  }

  #annotatePipe(): Promise<unknown> {
    return this.#patchAnyPipe({ metadata: { annotations: { note: `${this.service.random()}` } } });
  }

  #changeImage(): Promise<unknown> {
    const image = `registry.example/pipe:${this.service.below(5)}`;
    return this.#patchAnyPipe({ spec: { template: { spec: { containers: [{ name: "pipe", image }] } } } });
  }

  #scale(): Promise<unknown> {
    return this.#patchAnyPipe({ spec: { replicas: this.service.below(3) } });
  }

  #patchAnyPipe(body: object): Promise<unknown> {
    return this.service.withPipe(async (name) => {
      await this.service.environment.patchPipe(name, body);
      return name;
    });
  }
}
