import { isAlreadyExists } from "../../kube/errors.ts";
import { type ConfigMap, isBeingDeleted, type KubeObject, type Secret } from "../../kube/objects.ts";
import { CONFIG_MAPS, type Resource, SECRETS } from "../../kube/paths.ts";
import { type ApiKey, parseApiKey } from "../../records/api-key.ts";
import type { RecordKind } from "../../records/kinds.ts";
import { API_KEY_SECRET_TYPE } from "../../records/labels.ts";
import {
  type Organization,
  organizationConfigMapName,
  parseOrganization,
} from "../../records/organization.ts";
import type { Parsed } from "../../records/parse.ts";
import { parseService, type Service, serviceConfigMapName } from "../../records/service.ts";
import { CliError } from "../failure.ts";
import type { Io } from "../io.ts";
import { kubectlCommand, type Place, programCommand } from "../options.ts";
import type { DataChange, Records } from "./records.ts";
import { retryOnConflict, withKnownOutcome } from "./retry.ts";

interface KindSpec<O extends KubeObject, T> {
  /** Completes "There is no …". */
  readonly noun: string;
  readonly resource: Resource;
  readonly label: RecordKind | "api-key";
  /** The words of the command that lists the IDs. */
  readonly listedBy: string;
  /** The words of the command that shows a record, before its ID. */
  readonly shownBy: string;
  get(records: Records, id: string): Promise<O | undefined>;
  parse(object: O): Parsed<T>;
  /** Encodes a value for the data of the object; by default the text itself. */
  encode?(text: string): string;
}

/** Printed after a command to edit a Secret, whose data is in base64. */
export const IN_SECRET = ", and write values as plain text under a new key stringData";

/** The beginning of a sentence for people whose record has a wrong name or type, which no edit can change. */
export function createAgain(place: Place, resource: string, { metadata }: KubeObject): string {
  const words = `get ${resource} ${metadata.name} --namespace ${place.namespace} --output yaml`;
  return `No edit can change that: save the output of \`${kubectlCommand(place, words)}\`, delete the ${resource}, and create it again from the corrected output`;
}

function singular({ plural }: Resource): string {
  return plural.replace(/s$/, "");
}

/** A kind of record that has an ID. */
export class Kind<O extends KubeObject, T extends { readonly name: string }> {
  readonly #spec: KindSpec<O, T>;

  constructor(spec: KindSpec<O, T>) {
    this.#spec = spec;
  }

  /** The record of an object, or the problem with it. */
  parse(object: O): Parsed<T> {
    return this.#spec.parse(object);
  }

  /** Returns `undefined` if no well-formed record has this ID, and reports a malformed one on standard error. */
  async find(records: Records, io: Io, id: string): Promise<T | undefined> {
    const object = await this.#spec.get(records, id);
    return this.wellFormed(io, object ? [object] : [])[0];
  }

  /** @throws CliError if there is none with this ID */
  async requireObject(records: Records, id: string): Promise<O> {
    const object = await this.#spec.get(records, id);
    if (object) return object;
    const { noun, listedBy } = this.#spec;
    throw new CliError(
      `There is no ${noun} with the ID ${id} in the namespace ${records.namespace}. To list the IDs: ${programCommand(records.place, listedBy)}`,
    );
  }

  /** @throws CliError if there is none with this ID, or its record is malformed */
  async require(records: Records, id: string): Promise<T> {
    const object = await this.requireObject(records, id);
    return this.read(object, `${this.#spec.noun} ${id}`, records.place);
  }

  /** @throws CliError if there is none with this ID, it is being deleted, or its record is malformed */
  async requireLive(records: Records, id: string): Promise<T> {
    const object = await this.#requireLiveObject(records, id);
    return this.read(object, `${this.#spec.noun} ${id}`, records.place);
  }

  async #requireLiveObject(records: Records, id: string): Promise<O> {
    const { noun, resource } = this.#spec;
    const object = await this.requireObject(records, id);
    const remedy = `If you still need the ${noun}, create another one.`;
    refuseDeleted(records.place, { resource, object, what: `${noun} ${id}`, remedy });
    return object;
  }

  /**
   * @param what as in "The record of … is malformed"
   * @throws CliError if the record is malformed
   */
  read(object: O, what: string, place: Place): T {
    const parsed = this.#spec.parse(object);
    if (parsed.ok) return parsed.value;
    const { resource } = this.#spec;
    const words = `edit ${singular(resource)} ${object.metadata.name} --namespace ${place.namespace}`;
    const edit = `Fix it with \`${kubectlCommand(place, words)}\`${resource === SECRETS ? IN_SECRET : ""}`;
    const remedy = parsed.isImmutable ? createAgain(place, singular(resource), object) : edit;
    throw new CliError(
      `The record of ${what} is malformed: ${parsed.problem}. ${remedy}, then run the command again.`,
    );
  }

  /** A record for people, as in "Delete …?"; one that is malformed can be deleted, too. */
  describe(object: O, id: string): string {
    const { noun, parse } = this.#spec;
    const parsed = parse(object);
    return parsed.ok ? `${noun} ${parsed.value.name} (${id})` : `${noun} ${id}, whose record is malformed`;
  }

  #showCommand(place: Place, id: string): string {
    return programCommand(place, `${this.#spec.shownBy} ${id}`);
  }

  /** Creates a record whose ID the option `--id` can set. @throws CliError if another record has the ID */
  async create(
    records: Records,
    id: string,
    object: { readonly metadata: { readonly name: string } },
  ): Promise<void> {
    const { noun, resource } = this.#spec;
    try {
      await withKnownOutcome(
        records.create(resource, object),
        `The ${noun} may have been created with the ID ${id}: see \`${this.#showCommand(records.place, id)}\`. If it was not, run the command again with \`--id ${id}\`, which never creates a second one`,
      );
    } catch (cause) {
      if (!isAlreadyExists(cause)) throw cause;
      const message = `The ${noun} with the ID ${id} already exists, and nothing was changed.`;
      throw new CliError(message, { cause });
    }
  }

  /**
   * Changes the data of a record. If another write comes first, the change is decided again. A record that is being
   * deleted does not change, because the change would be lost.
   *
   * @param confirmed waits for the write, and handles an unknown outcome
   * @returns the record after the change; if it is malformed then, the record before
   */
  change(
    records: Records,
    id: string,
    decide: (record: T) => DataChange,
    confirmed: (write: Promise<T>) => Promise<T> = (write) => this.#confirmed(records.place, id, write),
  ): Promise<T> {
    const { noun, resource, encode = (text) => text } = this.#spec;
    return retryOnConflict(`The record of ${noun} ${id}`, async () => {
      const object = await this.#requireLiveObject(records, id);
      const record = this.read(object, `${noun} ${id}`, records.place);
      const data = Object.entries(decide(record)).map(([key, text]) => [key, text && encode(text)]);
      const write = async () => {
        const changed = this.parse(
          await records.change(resource, object, { data: Object.fromEntries(data) }),
        );
        return changed.ok ? changed.value : record;
      };
      return await confirmed(write());
    });
  }

  #confirmed(place: Place, id: string, write: Promise<T>): Promise<T> {
    return withKnownOutcome(
      write,
      `The change of ${this.#spec.noun} ${id} may have been made: see \`${this.#showCommand(place, id)}\` before you run the command again`,
    );
  }

  /** Prints a line on standard error for each malformed record, and returns the others. */
  wellFormed(io: Pick<Io, "err">, objects: readonly O[]): T[] {
    return objects.flatMap((object) => {
      const parsed = this.#spec.parse(object);
      if (parsed.ok) return [parsed.value];
      io.err(`The record ${object.metadata.name} is malformed and was skipped: ${parsed.problem}.\n`);
      return [];
    });
  }

  /** Lists the well-formed records, of one organization or of all. */
  async list(records: Records, io: Pick<Io, "err">, organizationId?: string): Promise<T[]> {
    const { resource, label } = this.#spec;
    return this.wellFormed(io, await records.list<O>(resource, label, organizationId));
  }
}

interface ChangedObject {
  readonly resource: Resource;
  readonly object: KubeObject;
  /** Completes "The … is being deleted". */
  readonly what: string;
  /** For people who still need what is being deleted. */
  readonly remedy: string;
}

/** @throws CliError if the object is being deleted, because it would take the change with it */
export function refuseDeleted(place: Place, { resource, object, what, remedy }: ChangedObject): void {
  const { metadata } = object;
  if (!isBeingDeleted(metadata)) return;
  const { name, namespace = place.namespace } = metadata;
  const words = `get ${singular(resource)} ${name} --namespace ${namespace} --output yaml`;
  throw new CliError(
    `The ${what} is being deleted, so nothing was changed. To see the finalizers that keep it, run \`${kubectlCommand(place, words)}\`. ${remedy}`,
  );
}

export const ORGANIZATIONS = new Kind<ConfigMap, Organization>({
  noun: "organization",
  resource: CONFIG_MAPS,
  label: "organization",
  listedBy: "admin organization list",
  shownBy: "admin organization show",
  get: (records, id) => records.get(CONFIG_MAPS, organizationConfigMapName(id)),
  parse: ({ metadata, data }) => parseOrganization(metadata.name, data),
});

export const SERVICES = new Kind<ConfigMap, Service>({
  noun: "service",
  resource: CONFIG_MAPS,
  label: "service",
  listedBy: "admin service list",
  shownBy: "admin service show",
  get: (records, id) => records.get(CONFIG_MAPS, serviceConfigMapName(id)),
  parse: ({ metadata, data }) => parseService(metadata.name, metadata.labels, data),
});

/** An API key with the name of its Secret, and whether that is being deleted; then the API rejects the key. */
export type NamedKey = ApiKey & { readonly secretName: string; readonly isBeingDeleted: boolean };

export const KEYS = new Kind<Secret, NamedKey>({
  noun: "API key",
  resource: SECRETS,
  label: "api-key",
  listedBy: "admin key list --organization <uuid>",
  shownBy: "admin key show",
  get: findKey,
  parse({ metadata, type, data }) {
    // The API selects Secrets by their type, so it never sees this one.
    if (type !== API_KEY_SECRET_TYPE) {
      return { ok: false, problem: `the type must be ${API_KEY_SECRET_TYPE}`, isImmutable: true };
    }
    const parsed = parseApiKey(metadata.name, metadata.labels, data);
    if (!parsed.ok) return parsed;
    const secretName = metadata.name;
    return { ok: true, value: { ...parsed.value, secretName, isBeingDeleted: isBeingDeleted(metadata) } };
  },
  encode: base64,
});

/** Searches the Secrets of all keys, because the name of a Secret does not contain the ID of its key. */
async function findKey(records: Records, id: string): Promise<Secret | undefined> {
  const secrets = await records.list<Secret>(SECRETS, "api-key");
  const [found, another] = secrets.filter(({ data }) => data?.["id"] === base64(id));
  if (!found || !another) return found;
  throw new CliError(
    `Several Secrets are the API key ${id}, among them ${found.metadata.name} and ${another.metadata.name}: keep one of them, and delete the others with kubectl.`,
  );
}

function base64(text: string): string {
  return Buffer.from(text, "utf8").toString("base64");
}
