import { KubectlError } from "@pipe-scaling/local-cluster/kubectl";
import { DATABASE_TYPE, RETRY_ANNOTATION, SERVICE_LABEL, TYPE_LABEL } from "../../../src/controller/names.ts";
import { API_VERSION, KIND, PIPE_SCALINGS } from "../../../src/crd/names.ts";
import { KubeApiError, KubeUnreachableError } from "../../../src/kube/errors.ts";
import { DEPLOYMENTS, objectPath } from "../../../src/kube/paths.ts";
import { type Operation, type ServiceUnderTest, TIER_NAMES } from "./service-under-test.ts";

const FEWEST_PIPES = 3;
const MOST_PIPES = 7;

/** Other programs that act on the service. */
export interface OtherWriters {
  readonly operations: readonly Operation[];
  /** Resolves when they have stopped. */
  end(): Promise<void>;
}

/** Random operations of people and other programs on a service while its pipes are resized. */
export class Operations {
  /** The names of the operations so far, with the times. */
  readonly log: string[] = [];
  readonly #service: ServiceUnderTest;
  readonly #others: readonly OtherWriters[];
  readonly #operations: readonly Operation[];
  #made = 0;
  #requested: readonly number[] = [];

  get serviceId() {
    return this.#service.environment.serviceId;
  }

  constructor(service: ServiceUnderTest, others: readonly OtherWriters[] = []) {
    this.#service = service;
    this.#others = others;
    const own: readonly Operation[] = [
      ...Array.from({ length: 8 }, () => this.#requestRandom),
      this.#requestPrevious,
      this.#requestPrevious,
      this.#requestDefault,
      this.#changeTier,
      this.#addPipe,
      this.#removePipe,
      this.#suspend,
      this.#resume,
      this.#resume,
      this.#resume,
      this.#deleteScaling,
      this.#spoilRecord,
      this.#repairRecord,
      this.#repairRecord,
      this.#repairRecord,
      this.#writeOverSize,
      this.#requestRetry,
      this.#annotatePipe,
      this.#changeImage,
      this.#scale,
    ];
    this.#operations = [...own, ...others.flatMap(({ operations }) => operations)];
  }

  /** Executes a random operation, unless the API server is down or rejects it. */
  async any(): Promise<void> {
    const operation = this.#operations[this.#service.below(this.#operations.length)] ?? this.#requestRandom;
    const at = new Date().toISOString();
    const isDone = await ifPossible(() => operation.call(this));
    const name = operation.name.replace(/^bound #|^#/, "");
    this.log.push(`${at} ${this.#service.environment.pipes} ${name}${isDone ? "" : " (failed)"}`);
  }

  /** Removes all obstacles and requests a size. @throws Error while the API server is down */
  async conclude(cores: number): Promise<void> {
    const { environment, tier } = this.#service;
    for (const other of this.#others) await other.end();
    await this.#service.patchOrganization({ tier });
    this.#service.accept(cores);
    await environment.requestSize(cores);
    await environment.patchScaling({ suspend: null });
  }

  async addPipes(count: number): Promise<void> {
    for (let index = 0; index < count; index++) await this.#addPipe();
  }

  async #requestRandom(): Promise<void> {
    await this.#requestSize(1 + this.#service.below(8));
  }

  /** Requests the size before the last one, which may still be in progress. */
  async #requestPrevious(): Promise<void> {
    await this.#requestSize(this.#requested.at(-2) ?? 1);
  }

  async #requestSize(cores: number): Promise<void> {
    this.#requested = [...this.#requested.slice(-1), cores];
    this.#service.accept(cores);
    await this.#service.environment.requestSize(cores);
  }

  async #requestDefault(): Promise<void> {
    this.#service.acceptDefault();
    await this.#service.environment.requestSize(null);
  }

  async #changeTier(): Promise<void> {
    const tier = TIER_NAMES[this.#service.below(TIER_NAMES.length)] ?? "basic";
    this.#service.acceptDefault(tier);
    await this.#service.patchOrganization({ tier });
    this.#service.tier = tier;
  }

  async #addPipe(): Promise<void> {
    const { environment, pipes } = this.#service;
    if (pipes.size >= MOST_PIPES) return;
    this.#made += 1;
    const name = `pipe-${this.#made}`;
    const cores = 1 + this.#service.below(3);
    // A pipe whose pods do not have its labels is never resized in place.
    const isLabeled = this.#service.below(6) > 0;
    const podLabels = { [SERVICE_LABEL]: environment.serviceId, [TYPE_LABEL]: DATABASE_TYPE };
    const replicas = this.#service.below(4);
    await environment.createPipe({ name, cores, replicas, ...(isLabeled ? { podLabels } : {}) });
    pipes.add(name);
  }

  async #removePipe(): Promise<void> {
    const { environment, pipes } = this.#service;
    if (pipes.size <= FEWEST_PIPES) return;
    await this.#service.withPipe(async (name) => {
      await environment.client.json({
        method: "DELETE",
        path: objectPath(DEPLOYMENTS, environment.pipes, name),
      });
      pipes.delete(name);
    });
  }

  async #suspend(): Promise<void> {
    await this.#service.environment.patchScaling({ suspend: true });
  }

  /** A person who resumes a service requests the size in its spec. */
  async #resume(): Promise<void> {
    const { environment } = this.#service;
    const { metadata, spec } = await environment.scaling();
    if (!spec?.suspend) return;
    this.#service.acceptSpec(spec);
    await environment.client.json({
      method: "PATCH",
      path: this.#scalingPath,
      patchType: "application/merge-patch+json",
      body: {
        apiVersion: API_VERSION,
        kind: KIND,
        metadata: { uid: metadata.uid },
        spec: { suspend: null },
      },
    });
  }

  async #deleteScaling(): Promise<void> {
    await this.#service.environment.client.json({ method: "DELETE", path: this.#scalingPath });
  }

  async #spoilRecord(): Promise<void> {
    await this.#service.patchOrganization({ tier: null });
  }

  async #repairRecord(): Promise<void> {
    await this.#service.patchOrganization({ tier: this.#service.tier });
  }

  async #writeOverSize(): Promise<void> {
    const resources = { requests: { cpu: `${1 + this.#service.below(8)}` } };
    await this.#patchAnyPipe({ spec: { template: { spec: { containers: [{ name: "pipe", resources }] } } } });
  }

  async #annotatePipe(): Promise<void> {
    await this.#patchAnyPipe({ metadata: { annotations: { note: `${this.#service.random()}` } } });
  }

  async #changeImage(): Promise<void> {
    const image = `registry.example/pipe:${this.#service.below(5)}`;
    await this.#patchAnyPipe({ spec: { template: { spec: { containers: [{ name: "pipe", image }] } } } });
  }

  async #scale(): Promise<void> {
    await this.#patchAnyPipe({ spec: { replicas: this.#service.below(3) } });
  }

  async #requestRetry(): Promise<void> {
    const { environment } = this.#service;
    await environment.patchScaling(undefined, { [RETRY_ANNOTATION]: new Date().toISOString() });
  }

  async #patchAnyPipe(body: object): Promise<void> {
    await this.#service.withPipe((name) => this.#service.environment.patchPipe(name, body));
  }

  get #scalingPath(): string {
    const { pipes, serviceId } = this.#service.environment;
    return objectPath(PIPE_SCALINGS, pipes, serviceId);
  }
}

/** Returns false if the API server is down or rejects it. */
export async function ifPossible(operation: Operation): Promise<boolean> {
  try {
    await operation();
    return true;
  } catch (error) {
    const isRefused = [KubeApiError, KubeUnreachableError, KubectlError].some(
      (each) => error instanceof each,
    );
    if (!isRefused) throw error;
    return false;
  }
}
