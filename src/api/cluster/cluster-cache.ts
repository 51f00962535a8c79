import { PIPE_SCALINGS } from "../../crd/names.ts";
import { type ConfigMap, isBeingDeleted, type KubeObject, type Secret } from "../../kube/objects.ts";
import { CONFIG_MAPS, SECRETS } from "../../kube/paths.ts";
import type { ApiKey } from "../../records/api-key.ts";
import { RECORD_KINDS, type RecordKind } from "../../records/kinds.ts";
import { API_KEY_SECRET_TYPE, RESOURCE_LABEL } from "../../records/labels.ts";
import type { Service } from "../../records/service.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { ReflectorClient } from "../../runtime/list-watch.ts";
import { Outage } from "../../runtime/outage.ts";
import { keyOf } from "../../runtime/store.ts";
import type { Logger } from "../../telemetry/log.ts";
import type { CacheState } from "../metrics.ts";
import { Informer } from "./informer.ts";
import { KeyUsageBuffer } from "./key-usage/buffer.ts";
import { RecentlyDeleted } from "./recently-deleted.ts";
import {
  type KeyView,
  type PipeScalingResource,
  type PipeScalingView,
  problemOf,
  type RecordView,
  toKeyView,
  toPipeScalingView,
  toRecordView,
  type ViewOf,
} from "./views.ts";

export interface ClusterCacheOptions {
  readonly client: ReflectorClient;
  /** Namespace of the records. */
  readonly namespace: string;
  /** Namespaces of pipes; all if empty. */
  readonly pipeNamespaces: readonly string[];
  /** Requests are rejected if the API server has not confirmed the caches for this long. */
  readonly maxAgeMs: number;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * The API's view of the cluster: keys, records of organizations and services, and PipeScalings. Lookups use the names
 * of objects as keys of Maps, so that a string from a caller matches at most one object.
 */
export class ClusterCache {
  /** Key usage that is not written to the cluster yet. */
  readonly keyUsageBuffer = new KeyUsageBuffer();

  readonly #namespace: string;
  readonly #keys: Informer<KeyView, Secret>;
  readonly #records: Informer<RecordView, ConfigMap>;
  /** Keyed by namespace; a cache of all namespaces has the key `undefined`. */
  readonly #scalings: ReadonlyMap<string | undefined, Informer<PipeScalingView, PipeScalingResource>>;
  readonly #deletedScalings: RecentlyDeleted;

  constructor({ namespace, pipeNamespaces, maxAgeMs, ...others }: ClusterCacheOptions) {
    const common = { ...others, maxAgeMs, outage: new Outage() };
    this.#namespace = namespace;
    this.#keys = new Informer({
      ...common,
      what: "API keys",
      resource: SECRETS,
      namespace,
      fieldSelector: `type=${API_KEY_SECRET_TYPE}`,
      // The commands that revoke keys would not find a key without this label, so it must not work.
      labelSelector: `${RESOURCE_LABEL}=api-key`,
      project: toKeyView,
      problemOf,
      indexes: { organization: ({ parsed }) => (parsed.ok ? [parsed.value.organizationId] : []) },
    });
    const servesNamespace = (of: string) => pipeNamespaces.length === 0 || pipeNamespaces.includes(of);
    this.#records = new Informer({
      ...common,
      what: "organizations and services",
      resource: CONFIG_MAPS,
      namespace,
      labelSelector: `${RESOURCE_LABEL} in (${Object.keys(RECORD_KINDS).join(",")})`,
      project: (raw: ConfigMap) => toRecordView(raw, servesNamespace),
      problemOf,
      indexes: { services: (record) => (record.kind === "service" ? [record.organizationId ?? ""] : []) },
    });
    const scalings = (of: string | undefined) => {
      const what = of === undefined ? "PipeScalings" : `PipeScalings in ${of}`;
      return new Informer({
        ...common,
        what,
        resource: PIPE_SCALINGS,
        namespace: of,
        project: toPipeScalingView,
      });
    };
    const namespaces = pipeNamespaces.length === 0 ? [undefined] : pipeNamespaces;
    this.#scalings = new Map(namespaces.map((of) => [of, scalings(of)]));
    const deleted = new RecentlyDeleted(others.clock);
    this.#deletedScalings = deleted;
    for (const cache of this.#scalings.values()) cache.onChange((change) => deleted.observe(change));
    logProblems(this.#keys, common.log);
    logProblems(this.#records, common.log);
  }

  /** Keeps the caches up to date until the signal is aborted. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([
      this.#keys.run(signal),
      this.#records.run(signal),
      ...[...this.#scalings.values()].map((cache) => cache.run(signal)),
    ]);
  }

  /**
   * Names of the caches that must be filled before the process is ready, for people. If the API server refuses the
   * PipeScalings of some namespaces, but not of all, only the services in these namespaces have to wait for them.
   */
  notSynced(): readonly string[] {
    const scalings = [...this.#scalings.values()];
    const isAnySynced = scalings.some(({ isSynced }) => isSynced);
    const required = isAnySynced ? scalings.filter(({ wasRefused }) => !wasRefused) : scalings;
    const all = [this.#keys, this.#records, ...required];
    return all.filter(({ isSynced }) => !isSynced).map(({ what }) => what);
  }

  states(): readonly CacheState[] {
    return [this.#keys, this.#records, ...this.#scalings.values()].map(({ state }) => state);
  }

  /** @throws ApiError 503 if keys or records are too old to decide on */
  requireFreshRecords(): void {
    this.#keys.requireFresh();
    this.#records.requireFresh();
  }

  key(secretName: string): KeyView | undefined {
    return this.#keys.get(this.#namespace, secretName);
  }

  /** The well-formed keys of an organization, except those that are being deleted, in no particular order. */
  keysOf(organizationId: string): readonly ApiKey[] {
    const keys = this.#keys.by("organization", organizationId);
    return keys.flatMap(({ metadata, parsed }) =>
      parsed.ok && !isBeingDeleted(metadata) ? [parsed.value] : [],
    );
  }

  /** The last use of a key as recorded in the cluster, so that every process returns the same. */
  usedAt({ organizationId, id }: Pick<ApiKey, "organizationId" | "id">): Date | undefined {
    const time = this.record("key-usage", organizationId)?.usage.get(id);
    return time?.ok ? time.value : undefined;
  }

  /** The well-formed services of an organization, in no particular order. */
  servicesOf(organizationId: string): readonly Service[] {
    const records = this.#records.by("services", organizationId);
    return records.flatMap((record) =>
      record.kind === "service" && record.parsed.ok ? [record.parsed.value] : [],
    );
  }

  /** @param id the ID, of the organization or the service, in the name of the record (`RECORD_KINDS`) */
  record<K extends RecordKind>(kind: K, id: string): ViewOf<K> | undefined {
    const record = this.#records.get(this.#namespace, RECORD_KINDS[kind].name(id));
    return record && isOfKind(record, kind) ? record : undefined;
  }

  /** Stores the response to one of our writes. */
  observeRecord(object: RecordView): void {
    this.#records.observe(object);
  }

  /** @throws ApiError 503 if the cached PipeScalings of the namespace are too old to decide on */
  scaling(namespace: string, name: string): PipeScalingView | undefined {
    const cache = this.#scalingsIn(namespace);
    cache.requireFresh();
    return cache.get(namespace, name);
  }

  /** Returns false if `scaling` would throw for any name in the namespace. */
  hasFreshScalings(namespace: string): boolean {
    return this.#scalingsIn(namespace).isFresh;
  }

  /**
   * Returns true if a service has a PipeScaling, or if this process has seen its deletion in the last hour. Such a
   * service has had a pipe, and the controller is likely to create the PipeScaling again.
   *
   * @throws ApiError 503 like {@link scaling}
   */
  hasHadScaling(namespace: string, name: string): boolean {
    return this.scaling(namespace, name) !== undefined || this.#deletedScalings.has(namespace, name);
  }

  /** Stores the response to one of our writes. */
  observeScaling(namespace: string, object: PipeScalingView): void {
    this.#scalingsIn(namespace).observe(object);
  }

  #scalingsIn(namespace: string): Informer<PipeScalingView, PipeScalingResource> {
    const cache = this.#scalings.get(namespace) ?? this.#scalings.get(undefined);
    if (!cache) throw new Error(`the PipeScalings of namespace ${namespace} are not watched`);
    return cache;
  }
}

function isOfKind<K extends RecordKind>(record: RecordView, kind: K): record is ViewOf<K> {
  return record.kind === kind;
}

/**
 * Logs malformed records, once per version. Key usage, which we write ourselves every minute, is logged only when its
 * problem changes.
 */
function logProblems<T extends KeyView | RecordView, Raw extends KubeObject>(
  cache: Informer<T, Raw>,
  log: Logger,
): void {
  cache.onChange((change) => {
    if (change.type === "deleted") return;
    const { object } = change;
    const problem = problemOf(object);
    if (problem === undefined) return;
    if (change.type === "updated" && "usage" in object && problemOf(change.previous) === problem) return;
    const { resourceVersion } = object.metadata;
    log.warn({ record: keyOf(object), resourceVersion, problem }, "malformed record");
  });
}
