import { setTimeout as delay } from "node:timers/promises";
import { API_VERSION, KIND, PIPE_SCALINGS } from "../../../src/crd/names.ts";
import { collectionPath, objectPath } from "../../../src/kube/paths.ts";
import type { Operation, OtherWriters } from "./operation.ts";
import { inResizeWindow } from "./resize-window.ts";
import type { ServiceUnderTest } from "./service-under-test.ts";

/** Maximum time between a request and the change of mind. */
const SOON_MS = 1000;

/** Changes of a PipeScaling by people: requests, suspensions, other strategies, deletions and replacements. */
export class RequestOperations implements OtherWriters {
  readonly operations: readonly Operation[];
  readonly #service: ServiceUnderTest;

  constructor(service: ServiceUnderTest) {
    this.#service = service;
    this.operations = [
      ...Array.from({ length: 8 }, () => this.#requestRandom),
      this.#requestPrevious,
      this.#requestPrevious,
      this.#requestDefault,
      this.#requestRetry,
      this.#setStrategy,
      this.#changeMind,
      this.#changeMind,
      this.#suspend,
      this.#resume,
      this.#resume,
      this.#resume,
      this.#deleteScaling,
      this.#replaceScaling,
      this.#replaceScaling,
      this.#emptyStatus,
      this.#emptyStatus,
    ].map((operation) => operation.bind(this));
  }

  end(): Promise<void> {
    return Promise.resolve();
  }

  async #requestRandom(): Promise<string> {
    const cores = this.#service.anySize();
    await this.#service.request(cores);
    return `${cores} cores`;
  }

  async #requestPrevious(): Promise<string> {
    const cores = this.#service.requestedBefore;
    await this.#service.request(cores);
    return `${cores} cores`;
  }

  async #requestDefault(): Promise<void> {
    await this.#service.request(null);
  }

  async #requestRetry(): Promise<void> {
    await this.#service.requestRetry();
  }

  async #setStrategy(): Promise<void> {
    const strategy = this.#service.pick(["InPlaceOrRollout", "InPlaceOrRollout", "InPlace", "Rollout", null]);
    await this.#service.environment.patchScaling({ strategy });
  }

  /** Requests a size, and during the resize the size before it together with another strategy. */
  async #changeMind(): Promise<string> {
    const before = this.#service.requested;
    const strategy = this.#service.pick(["Rollout", "Rollout", "InPlace", "InPlaceOrRollout", null]);
    const delayMs = this.#service.random() * SOON_MS;
    const isInPlace = await inResizeWindow(this.#service);
    await delay(delayMs);
    await this.#service.request(before, { strategy });
    return `${before} cores again, with ${strategy}${isInPlace ? ", during a resize in place" : ""}`;
  }

  async #suspend(): Promise<void> {
    await this.#service.environment.patchScaling({ suspend: true });
  }

  /** A person who resumes a service requests the size in its spec. */
  async #resume(): Promise<unknown> {
    const { environment } = this.#service;
    const { metadata, spec } = await environment.scaling();
    if (!spec?.suspend) return false;
    this.#service.acceptSpec(spec);
    return environment.client.json({
      method: "PATCH",
      path: this.#path,
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
    await this.#service.environment.client.json({ method: "DELETE", path: this.#path });
  }

  /** Like `kubectl replace --force`: the new object has the same spec and no status. */
  async #replaceScaling(): Promise<void> {
    const { environment } = this.#service;
    const { client, pipes, serviceId: name } = environment;
    const { spec } = await environment.scaling();
    if (!spec?.suspend) this.#service.acceptSpec(spec);
    await client.json({ method: "DELETE", path: this.#path });
    await client.json({
      method: "POST",
      path: collectionPath(PIPE_SCALINGS, pipes),
      query: { fieldManager: "replacer" },
      body: { apiVersion: API_VERSION, kind: KIND, metadata: { name }, spec },
    });
  }

  async #emptyStatus(): Promise<void> {
    await this.#service.environment.client.json({
      method: "PATCH",
      path: `${this.#path}/status`,
      patchType: "application/merge-patch+json",
      query: { fieldManager: "somebody" },
      body: { status: null },
    });
  }

  get #path(): string {
    const { pipes, serviceId } = this.#service.environment;
    return objectPath(PIPE_SCALINGS, pipes, serviceId);
  }
}
