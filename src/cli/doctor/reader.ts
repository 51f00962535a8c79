import type { KubeClient } from "../../kube/client.ts";
import { isCode } from "../../kube/errors.ts";
import type { KubeObject } from "../../kube/objects.ts";
import { listAll, type Selection, unlessCode } from "../reading.ts";
import { type Check, note, type Report } from "./result.ts";

/** Reads the cluster with the permissions of the kubeconfig; without a permission it adds a note to the report. */
export class Reader {
  readonly client: Pick<KubeClient, "json">;
  readonly signal: AbortSignal;
  readonly report: Report;

  constructor(client: Pick<KubeClient, "json">, report: Report, signal: AbortSignal) {
    this.client = client;
    this.report = report;
    this.signal = signal;
  }

  /** @param what as in "You may not …" */
  get<T>(check: Check, what: string, path: string): Promise<{ readonly object: T | undefined } | undefined> {
    const read = async (): Promise<{ readonly object: T | undefined }> => ({
      object: await this.client.json<T>({ path, signal: this.signal }),
    });
    return this.allowed(check, what, unlessCode(404, read(), { object: undefined }));
  }

  /** In one namespace, or in all. A kind that the cluster does not know has no objects. */
  list<T extends KubeObject>(check: Check, selection: Selection): Promise<readonly T[] | undefined> {
    const { resource, namespace } = selection;
    const where = namespace === undefined ? "in all namespaces" : `in ${namespace}`;
    const read = unlessCode(404, listAll<T>(this.client, selection, this.signal), []);
    return this.allowed(check, `list ${resource.plural} ${where}`, read);
  }

  /** In each of the namespaces, or in all if there are none. */
  async listIn<T extends KubeObject>(
    check: Check,
    selection: Selection,
    namespaces: readonly string[],
  ): Promise<readonly T[]> {
    const lists: (readonly T[])[] = [];
    for (const namespace of namespaces.length === 0 ? [undefined] : namespaces) {
      lists.push((await this.list<T>(check, { ...selection, namespace })) ?? []);
    }
    return lists.flat();
  }

  /** `undefined` without the permission. */
  async allowed<T>(check: Check, what: string, reading: Promise<T>): Promise<T | undefined> {
    try {
      return await reading;
    } catch (error) {
      if (!isCode(error, 403)) throw error;
      this.report.add(check, [
        note(`Not checked: you may not ${what}.`, "Use a kubeconfig that has this permission."),
      ]);
      return undefined;
    }
  }
}
