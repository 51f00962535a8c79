import { PIPE_SCALINGS } from "../crd/names.ts";
import type { ConfigMap, KubeObject, Secret } from "../kube/objects.ts";
import { CONFIG_MAPS, SECRETS } from "../kube/paths.ts";
import type { ApiKey } from "../records/api-key.ts";
import { backupConfigMapName } from "../records/backup.ts";
import { keyUsageConfigMapName } from "../records/key-usage.ts";
import { API_KEY_SECRET_TYPE, RESOURCE_LABEL } from "../records/labels.ts";
import { membersConfigMapName } from "../records/members.ts";
import { organizationConfigMapName } from "../records/organization.ts";
import { serviceConfigMapName } from "../records/service.ts";
import type { Clock } from "../runtime/clock.ts";
import type { ReflectorClient } from "../runtime/reflector.ts";
import { keyOf } from "../runtime/store.ts";
import type { Logger } from "../telemetry/log.ts";
import { Cache } from "./cache.ts";
import {
  type CachedBackup,
  type CachedKey,
  type CachedKeyUsage,
  type CachedMembers,
  type CachedOrganization,
  type CachedRecord,
  type CachedScaling,
  type CachedService,
  type PipeScalingResource,
  problemOf,
  toCachedKey,
  toCachedRecord,
  toCachedScaling,
} from "./cached-objects.ts";
import { KeyUsageNotes } from "./key-usage-notes.ts";
import type { CacheState } from "./metrics.ts";

/** Of what is cached (api-contract, part 2). */
const MAX_AGE_MS = 5 * 60_000;

export interface CachesOptions {
  readonly client: ReflectorClient;
  /** Namespace of the records. */
  readonly namespace: string;
  /** Namespaces of pipes; all when empty. */
  readonly pipeNamespaces: readonly string[];
  /** How old what is known of the cluster may be before reads are refused; 5 minutes if absent. */
  readonly maxAgeMs?: number | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * The cluster as the API sees it: keys, records of organizations and services, and PipeScalings. Look-ups are by the
 * names that the objects have, through Maps, so that a caller's string finds just that.
 */
export class Caches {
  /** Uses of keys that the cluster is still to be told. */
  readonly usageNotes = new KeyUsageNotes();

  readonly #namespace: string;
  readonly #keys: Cache<CachedKey, Secret>;
  readonly #records: Cache<CachedRecord, ConfigMap>;
  /** By namespace; one for all of them under `undefined`. */
  readonly #scalings: ReadonlyMap<string | undefined, Cache<CachedScaling, PipeScalingResource>>;

  constructor({ namespace, pipeNamespaces, maxAgeMs = MAX_AGE_MS, ...others }: CachesOptions) {
    const common = { ...others, maxAgeMs };
    this.#namespace = namespace;
    this.#keys = new Cache({
      ...common,
      what: "API keys",
      resource: SECRETS,
      namespace,
      fieldSelector: `type=${API_KEY_SECRET_TYPE}`,
      project: toCachedKey,
      problemOf,
      indexes: { organization: ({ parsed }) => (parsed.ok ? [parsed.value.organizationId] : []) },
    });
    const servesNamespace = (of: string) => pipeNamespaces.length === 0 || pipeNamespaces.includes(of);
    this.#records = new Cache({
      ...common,
      what: "organizations and services",
      resource: CONFIG_MAPS,
      namespace,
      labelSelector: `${RESOURCE_LABEL} in (organization,service,members,backup,key-usage)`,
      project: (raw: ConfigMap) => toCachedRecord(raw, servesNamespace),
      problemOf,
    });
    const scalings = (of: string | undefined) => {
      const what = of === undefined ? "PipeScalings" : `PipeScalings in ${of}`;
      return new Cache({ ...common, what, resource: PIPE_SCALINGS, namespace: of, project: toCachedScaling });
    };
    const namespaces = pipeNamespaces.length === 0 ? [undefined] : pipeNamespaces;
    this.#scalings = new Map(namespaces.map((of) => [of, scalings(of)]));
    tellProblems(this.#keys, common.log);
    tellProblems(this.#records, common.log);
  }

  /** Keeps the caches up to date until the signal is aborted. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([
      this.#keys.run(signal),
      this.#records.run(signal),
      ...[...this.#scalings.values()].map((cache) => cache.run(signal)),
    ]);
  }

  /** What has not been read once yet, in words; empty when everything has. */
  notSynced(): readonly string[] {
    const all = [this.#keys, this.#records, ...this.#scalings.values()];
    return all.filter(({ isSynced }) => !isSynced).map(({ what }) => what);
  }

  states(): readonly CacheState[] {
    return [this.#keys, this.#records, ...this.#scalings.values()].map(({ state }) => state);
  }

  /** @throws Problem 503 if who may do what, and what there is, is not known well enough to say */
  requireFreshRecords(): void {
    this.#keys.requireFresh();
    this.#records.requireFresh();
  }

  key(secretName: string): CachedKey | undefined {
    return this.#keys.get(this.#namespace, secretName);
  }

  /** Those that can be read, in no order. */
  keysOf(organizationId: string): readonly ApiKey[] {
    const keys = this.#keys.by("organization", organizationId);
    return keys.flatMap(({ parsed }) => (parsed.ok ? [parsed.value] : []));
  }

  /** When a key was last used, as far as that has been written down: so every process answers the same. */
  usedAt({ organizationId, id }: Pick<ApiKey, "organizationId" | "id">): Date | undefined {
    const time = this.keyUsage(organizationId)?.usage.get(id);
    return time?.ok ? time.value : undefined;
  }

  keyUsage(organizationId: string): CachedKeyUsage | undefined {
    const record = this.#records.get(this.#namespace, keyUsageConfigMapName(organizationId));
    return record?.kind === "key-usage" ? record : undefined;
  }

  organization(id: string): CachedOrganization | undefined {
    const record = this.#records.get(this.#namespace, organizationConfigMapName(id));
    return record?.kind === "organization" ? record : undefined;
  }

  members(organizationId: string): CachedMembers | undefined {
    const record = this.#records.get(this.#namespace, membersConfigMapName(organizationId));
    return record?.kind === "members" ? record : undefined;
  }

  service(id: string): CachedService | undefined {
    const record = this.#records.get(this.#namespace, serviceConfigMapName(id));
    return record?.kind === "service" ? record : undefined;
  }

  backup(serviceId: string): CachedBackup | undefined {
    const record = this.#records.get(this.#namespace, backupConfigMapName(serviceId));
    return record?.kind === "backup" ? record : undefined;
  }

  /** The answer to a write of ours. */
  observeRecord(object: CachedRecord): void {
    this.#records.observe(object);
  }

  /** @throws Problem 503 if the PipeScalings of that namespace are not known well enough to say */
  scaling(namespace: string, name: string): CachedScaling | undefined {
    const cache = this.#scalingsIn(namespace);
    cache.requireFresh();
    return cache.get(namespace, name);
  }

  /** The answer to a write of ours. */
  observeScaling(namespace: string, object: CachedScaling): void {
    this.#scalingsIn(namespace).observe(object);
  }

  #scalingsIn(namespace: string): Cache<CachedScaling, PipeScalingResource> {
    const cache = this.#scalings.get(namespace) ?? this.#scalings.get(undefined);
    if (!cache) throw new Error(`the PipeScalings of namespace ${namespace} are not watched`);
    return cache;
  }
}

/**
 * Once per version of a record: a cache tells each version once. Of the use of keys, which we write ourselves
 * as often as each minute, only where a version has another problem than the one before.
 */
function tellProblems<T extends CachedKey | CachedRecord, Raw extends KubeObject>(
  cache: Cache<T, Raw>,
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
