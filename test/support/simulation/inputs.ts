import { RETRY_ANNOTATION } from "../../../src/controller/names.ts";
import type { Condition } from "../../../src/crd/pipe-scaling.ts";
import { boostFields } from "../../../src/crd/size-fields.ts";
import type { ResizeStrategy } from "../../../src/domain/resize-strategy.ts";
import { sizeOfCores } from "../../../src/domain/size.ts";
import type { ConfigMap } from "../../../src/kube/objects.ts";
import type { Container } from "../../../src/kube/pods.ts";
import type { Deployment } from "../../../src/kube/workloads.ts";
import type { FakeClock } from "../fakes/fake-clock.ts";
import { type PipeOptions, pipeDeployment } from "../fixtures/pipe.ts";
import { organizationRecord, serviceRecord } from "../fixtures/records.ts";
import { SimulatedCluster } from "./cluster.ts";

export const RECORDS = "records";
const PIPES = "pipes";
const ORGANIZATION = idOf(0);

/** The records, Deployments and PipeScalings of the services of one organization, and the actions of people. */
export abstract class SimulatedInputs {
  readonly cluster: SimulatedCluster;
  readonly clock: FakeClock;
  readonly rolloutTimeoutMs: number;
  protected readonly records = new Map<string, ConfigMap>();

  constructor(rolloutTimeoutMs: number, options: { readonly hasPods: boolean }) {
    this.rolloutTimeoutMs = rolloutTimeoutMs;
    this.cluster = new SimulatedCluster(rolloutTimeoutMs, options);
    this.clock = this.cluster.clock;
    this.#record(organizationRecord({ id: ORGANIZATION, tier: "basic" }), { isFirst: true });
  }

  /** A record was created or changed. */
  protected abstract onRecord(record: ConfigMap): void;

  protected abstract onRecordGone(record: ConfigMap): void;

  setTier(tier: string, data: Readonly<Record<string, string>> = {}): void {
    this.cluster.adoptionJudge.changedTier();
    const record = organizationRecord({ id: ORGANIZATION, tier });
    this.#record({ ...record, data: { ...record.data, ...data } });
  }

  addService(service: number, data: Readonly<Record<string, string>> = {}): void {
    const record = recordOf(service);
    this.#record({ ...record, data: { ...record.data, ...data } });
  }

  /** Deletes the record of a service. */
  removeService(service: number): void {
    const { name } = recordOf(service).metadata;
    const record = this.records.get(name);
    this.records.delete(name);
    this.cluster.readyJudge.changedByOthers();
    const resourceVersion = this.cluster.next();
    if (record) this.onRecordGone({ ...record, metadata: { ...record.metadata, resourceVersion } });
  }

  /** Deploys a running pipe, by default of one core. */
  deploy(name: string, service: number, options: Partial<PipeOptions> = {}): void {
    const serviceId = idOf(service);
    this.cluster.deploy(pipeDeployment({ name, namespace: PIPES, serviceId, cores: 1, ...options }));
  }

  /** Another writer replaces the Deployment with a manifest without our annotation. */
  replace(name: string, manifest: Pick<Deployment, "spec">): void {
    this.cluster.replace(name, manifest);
  }

  /** Like `kubectl rollout undo`: restores the template and the annotations of an earlier revision. */
  undo(name: string): void {
    this.cluster.undo(name);
  }

  setImage(name: string, image: string): void {
    this.cluster.change(name, { template: { spec: { containers: [{ name: "pipe", image }] } } });
  }

  /** A change by the owner or another writer. */
  setResources(name: string, resources: Container["resources"]): void {
    this.cluster.change(name, { template: { spec: { containers: [{ name: "pipe", resources }] } } });
  }

  requestSize(service: number, cores: number): void {
    const { cpuMillicores, memoryGib } = sizeOfCores(cores);
    this.cluster.patchScaling(idOf(service), {
      replicaCpuMillicores: cpuMillicores,
      replicaMemoryGb: memoryGib,
    });
  }

  /** Removes the size from the PipeScaling, so that the default of the tier applies. */
  requestDefaultSize(service: number): void {
    this.cluster.patchScaling(idOf(service), { replicaCpuMillicores: null, replicaMemoryGb: null });
  }

  /** Sets a boost in place of an earlier one. @param inMs its end, from now on */
  boost(service: number, cores: number, inMs: number): void {
    const untilMs = this.clock.now() + inMs;
    this.cluster.patchScaling(idOf(service), { boost: boostFields({ size: sizeOfCores(cores), untilMs }) });
  }

  /** Removes the boost. */
  endBoost(service: number): void {
    this.cluster.patchScaling(idOf(service), { boost: null });
  }

  /** @param strategy `null` for the setting of the controller */
  setStrategy(service: number, strategy: ResizeStrategy | null): void {
    this.cluster.patchScaling(idOf(service), { strategy });
  }

  /** The pipe belongs to another service from now on. */
  move(name: string, service: number): void {
    this.cluster.move(name, idOf(service));
  }

  suspend(service: number, suspend: boolean): void {
    this.cluster.patchScaling(idOf(service), { suspend });
  }

  /** @param inMs time of the request, from now on */
  askToRetry(service: number, inMs = 0): void {
    const at = new Date(this.clock.now() + inMs).toISOString();
    this.cluster.patchScaling(idOf(service), undefined, { [RETRY_ANNOTATION]: at });
  }

  status(service: number) {
    return this.cluster.scalings.get(idOf(service))?.status ?? {};
  }

  /** The generation of a service's PipeScaling. */
  generation(service: number): number | undefined {
    return this.cluster.scalings.get(idOf(service))?.metadata.generation;
  }

  /** The most important condition. */
  condition(service: number): Condition | undefined {
    return this.status(service).conditions?.at(-1);
  }

  sizes(...names: string[]): string[] {
    return names.map((name) => this.cluster.sizeOf(name));
  }

  /** Deletes a service's PipeScaling. @returns a function that creates it again, with the same spec */
  removeScaling(service: number): () => void {
    const { spec = {} } = this.cluster.scalings.get(idOf(service)) ?? {};
    this.cluster.removeScaling(idOf(service));
    return () => this.cluster.createScaling(idOf(service), spec);
  }

  /** Another writer deletes the PipeScaling and creates it again with its spec, like `kubectl replace --force`. */
  replaceScaling(service: number): void {
    this.cluster.replaceScaling(idOf(service));
  }

  /** Another writer removes the status of a service's PipeScaling. */
  emptyStatus(service: number): void {
    this.cluster.emptyStatus(idOf(service));
  }

  /** Another writer changes the conditions of a service's PipeScaling. */
  setConditions(service: number, change: (conditions: readonly Condition[]) => Condition[]): void {
    this.cluster.setConditions(idOf(service), change);
  }

  hasScaling(service: number): boolean {
    return this.cluster.scalings.has(idOf(service));
  }

  #record(
    made: Pick<ConfigMap, "data"> & { readonly metadata: { readonly name: string } },
    { isFirst = false } = {},
  ): void {
    const { name } = made.metadata;
    const stamps = { namespace: RECORDS, uid: name, resourceVersion: this.cluster.next() };
    const record = { ...made, metadata: { ...made.metadata, ...stamps } };
    this.records.set(name, record);
    this.cluster.readyJudge.changedByOthers();
    if (!isFirst) this.onRecord(record);
  }
}

function recordOf(service: number) {
  return serviceRecord({ id: idOf(service), organizationId: ORGANIZATION, namespace: PIPES });
}

/** The ID of a service. */
export function idOf(service: number): string {
  return `00000000-0000-4000-8000-${String(service).padStart(12, "0")}`;
}
