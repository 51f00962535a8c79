import { COMMANDS } from "../../../../src/all-commands.ts";
import { admin } from "../../../../src/cli/admin/admin.ts";
import { runProgram } from "../../../../src/cli/program.ts";
import { recordLabels } from "../../../../src/records/labels.ts";
import {
  type FakeResponse,
  type ReceivedRequest,
  startFakeHttpServer,
} from "../../../support/fakes/fake-http-server.ts";
import { fakeIo } from "../../../support/fakes/fake-io.ts";
import { writeKubeconfig } from "../../../support/fixtures/kubeconfig.ts";

/** A ConfigMap or a Secret of the fixtures. */
export interface FakeRecord {
  readonly kind: string;
  /** The type of a Secret. */
  readonly type?: string | undefined;
  readonly metadata: {
    readonly name: string;
    readonly labels?: Readonly<Record<string, string>>;
    /** Set while a finalizer keeps the deleted object. */
    readonly deletionTimestamp?: string;
  };
  readonly data?: Readonly<Record<string, string>>;
  readonly stringData?: Readonly<Record<string, string>>;
}

type Stored = ReturnType<FakeRecords["put"]>;

/** The records in a simulated API server, which checks the preconditions of a deletion. */
export class FakeRecords {
  readonly #objects = new Map<string, Stored>();
  #version = 0;
  /** Responds to a request in place of the simulation; `undefined` leaves it to the simulation. */
  intercept: (request: ReceivedRequest) => FakeResponse | undefined = () => undefined;

  /** Set if the standard output fails, like a file on a full disk. */
  isOutputBroken = false;

  constructor(...records: readonly FakeRecord[]) {
    for (const record of records) this.put(record);
  }

  get names(): string[] {
    return [...this.#objects.keys()].sort();
  }

  /** Creates an object, or writes it again. */
  put({ kind, type, metadata, data, stringData = {} }: FakeRecord) {
    this.#version += 1;
    const encoded = Object.entries(stringData).map(([key, text]) => [
      key,
      Buffer.from(text).toString("base64"),
    ]);
    const { name, labels = {}, ...others } = metadata;
    const stored = {
      kind,
      type,
      metadata: { ...others, name, labels, uid: `uid-of-${name}`, resourceVersion: String(this.#version) },
      data: { ...data, ...Object.fromEntries(encoded) },
    };
    this.#objects.set(name, stored);
    return stored;
  }

  labelsOf(name: string): Readonly<Record<string, string>> | undefined {
    return this.#objects.get(name)?.metadata.labels;
  }

  delete(name: string): void {
    this.#objects.delete(name);
  }

  /** Runs an admin command. @param beforeAnswer runs while the question waits for the answer "y" */
  async run(words: string, beforeAnswer: () => void = () => undefined) {
    const { url, requests } = await startFakeHttpServer((request) => this.#respond(request));
    const healthy = fakeIo({ input: true, answers: ["y"], beforeAnswer: async () => beforeAnswer() });
    const io = this.isOutputBroken ? { ...healthy, out: failToWrite } : healthy;
    const place = ["--kubeconfig", writeKubeconfig(url)];
    const code = await runProgram({ ...COMMANDS, commands: admin }, [...words.split(" "), ...place], io);
    return { code, ...healthy.written, writes: requests.filter(({ method }) => method !== "GET") };
  }

  #respond(request: ReceivedRequest): FakeResponse {
    const { pathname, searchParams } = new URL(request.path, "http://fake");
    const [, plural = "", name] = /\/(configmaps|secrets)(?:\/(.+))?$/.exec(pathname) ?? [];
    const intercepted = this.intercept(request);
    if (intercepted) return intercepted;
    if (name === undefined) return { body: this.#list(plural, searchParams.get("labelSelector") ?? "") };
    const stored = this.#objects.get(name);
    if (!stored) return status(404, "NotFound", `${name} not found`);
    if (request.method === "PATCH") return { body: this.#merge(stored, request.body as Partial<FakeRecord>) };
    if (request.method !== "DELETE") return { body: stored };
    if (!meetsPreconditions(stored, request.body)) return status(409, "Conflict", "the precondition failed");
    this.delete(name);
    return { body: {} };
  }

  /** Entries with `null` are not removed. */
  #merge({ kind, type, metadata, data }: Stored, change: Partial<FakeRecord>) {
    const labels = { ...metadata.labels, ...change.metadata?.labels };
    return this.put({ kind, type, metadata: { ...metadata, labels }, data: { ...data, ...change.data } });
  }

  #list(plural: string, selector: string) {
    const requirements = selector === "" ? [] : selector.split(",").map((each) => each.split("="));
    // In the order of the names, as from etcd.
    const items = this.names
      .flatMap((name) => this.#objects.get(name) ?? [])
      .filter(
        ({ kind, metadata: { labels } }) =>
          plural === `${kind.toLowerCase()}s` &&
          requirements.every(([key = "", value]) =>
            value === undefined ? key in labels : labels[key] === value,
          ),
      );
    return { metadata: { resourceVersion: String(this.#version) }, items };
  }
}

function failToWrite(): never {
  throw new Error("no space left on device");
}

/** An error of the API server. */
export function status(code: number, reason: string, message: string): FakeResponse {
  return { status: code, body: { kind: "Status", code, reason, message } };
}

/** The times at which the keys of an organization were used. */
export function keyUsageRecord(organizationId: string): FakeRecord {
  const labels = recordLabels("key-usage", organizationId);
  return { kind: "ConfigMap", metadata: { name: `key-usage-${organizationId}`, labels } };
}

function meetsPreconditions({ metadata }: Stored, body: unknown): boolean {
  const { preconditions } = body as { readonly preconditions?: Readonly<Record<string, string | undefined>> };
  const { uid = metadata.uid, resourceVersion = metadata.resourceVersion } = preconditions ?? {};
  return uid === metadata.uid && resourceVersion === metadata.resourceVersion;
}
