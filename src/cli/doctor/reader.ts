import type { KubeClient } from "../../kube/client.ts";
import { isCode } from "../../kube/errors.ts";
import type { KubeObject } from "../../kube/objects.ts";
import { listAll, type Selection } from "../status/list.ts";
import type { Check, Findings } from "./finding.ts";

/** What was read of one object, which need not be there. */
export interface Got<T> {
  readonly object: T | undefined;
}

/** Reads the cluster with the rights of the caller; where these do not suffice, that is noted. */
export class Reader {
  readonly client: KubeClient;
  readonly signal: AbortSignal;
  readonly findings: Findings;

  constructor(client: KubeClient, findings: Findings, signal: AbortSignal) {
    this.client = client;
    this.findings = findings;
    this.signal = signal;
  }

  /** @param what as it reads in "You may not …" */
  async get<T>(check: Check, what: string, path: string): Promise<Got<T> | undefined> {
    return this.allowed(check, what, this.#object<T>(path));
  }

  /** None of a kind that the cluster does not know. */
  list<T extends KubeObject>(check: Check, selection: Selection): Promise<readonly T[] | undefined> {
    const { resource, namespace } = selection;
    const where = namespace === undefined ? "in all namespaces" : `in ${namespace}`;
    return this.allowed(check, `list ${resource.plural} ${where}`, this.#objects<T>(selection));
  }

  /** In each of the namespaces, or, where none is named, in all; those of them that may be read. */
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

  /** `undefined` where the caller has no right to it. */
  async allowed<T>(check: Check, what: string, reading: Promise<T>): Promise<T | undefined> {
    try {
      return await reading;
    } catch (error) {
      if (!isCode(error, 403)) throw error;
      this.findings.add({
        severity: "note",
        check,
        message: `Not looked at: you may not ${what}.`,
        remedy: "Ask somebody who may, or have that right given to you for the time being.",
      });
      return undefined;
    }
  }

  async #object<T>(path: string): Promise<Got<T>> {
    try {
      return { object: await this.client.json<T>({ path, signal: this.signal }) };
    } catch (error) {
      if (isCode(error, 404)) return { object: undefined };
      throw error;
    }
  }

  async #objects<T extends KubeObject>(selection: Selection): Promise<readonly T[]> {
    try {
      return await listAll<T>(this.client, selection, this.signal);
    } catch (error) {
      if (isCode(error, 404)) return [];
      throw error;
    }
  }
}
