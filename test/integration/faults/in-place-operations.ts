import {
  RESIZE_AFTER_ANNOTATION,
  RESIZE_OUTCOME_ANNOTATION,
  RESIZE_OUTCOMES,
} from "@pipe-scaling/local-cluster/resize-stages";
import { collectionPath, objectPath, PODS } from "../../../src/kube/paths.ts";
import type { Pod } from "../../../src/kube/pods.ts";
import type { Operation, OtherWriters } from "./operation.ts";
import type { ServiceUnderTest } from "./service-under-test.ts";

/** Maximum time that a resize of a pod takes. */
const RESIZE_MS = 3000;

/** Random outcomes of resizes, pods that are deleted, and managed fields that are lost. */
export class InPlaceOperations implements OtherWriters {
  readonly operations: readonly Operation[] = [
    this.#hinderResize,
    this.#slowResize,
    this.#slowResize,
    this.#allowResizes,
    this.#allowResizes,
    this.#deletePod,
    this.#forgetManagersOfPod,
  ].map((operation) => operation.bind(this));
  readonly #service: ServiceUnderTest;

  constructor(service: ServiceUnderTest) {
    this.#service = service;
    service.onCalm(() => this.end());
  }

  async end(): Promise<void> {
    await this.#allowResizes();
  }

  #hinderResize(): Promise<unknown> {
    const outcome = RESIZE_OUTCOMES[this.#service.below(RESIZE_OUTCOMES.length)];
    return this.#patchAnyPod({ annotations: { [RESIZE_OUTCOME_ANNOTATION]: outcome } });
  }

  #slowResize(): Promise<unknown> {
    const after = `${this.#service.below(RESIZE_MS)}ms`;
    return this.#patchAnyPod({ annotations: { [RESIZE_AFTER_ANNOTATION]: after } });
  }

  /** A reset, as some tools do it. Later updates of such an object are not tracked. */
  #forgetManagersOfPod(): Promise<unknown> {
    return this.#patchAnyPod({ managedFields: [{}] });
  }

  /** Like new room on the nodes. */
  async #allowResizes(): Promise<unknown> {
    const hindered = (await this.#pods()).filter(
      ({ metadata }) => metadata.annotations?.[RESIZE_OUTCOME_ANNOTATION] !== undefined,
    );
    for (const { metadata } of hindered) {
      await this.#patch(metadata.name, { annotations: { [RESIZE_OUTCOME_ANNOTATION]: null } });
    }
    return hindered.length > 0;
  }

  async #deletePod(): Promise<unknown> {
    const { client, pipes } = this.#service.environment;
    const name = await this.#anyPod();
    if (name === undefined) return false;
    await client.json({ method: "DELETE", path: objectPath(PODS, pipes, name) });
    return name;
  }

  async #patchAnyPod(metadata: object): Promise<unknown> {
    const name = await this.#anyPod();
    if (name === undefined) return false;
    await this.#patch(name, metadata);
    return `${name} ${JSON.stringify(metadata)}`;
  }

  async #anyPod(): Promise<string | undefined> {
    const number = this.#service.random();
    const names = (await this.#pods()).map(({ metadata }) => metadata.name).sort();
    return names[Math.floor(number * names.length)];
  }

  async #pods(): Promise<readonly Pod[]> {
    const { client, pipes } = this.#service.environment;
    const path = collectionPath(PODS, pipes);
    return (await client.json<{ readonly items: readonly Pod[] }>({ path })).items;
  }

  async #patch(pod: string, metadata: object): Promise<void> {
    const { client, pipes } = this.#service.environment;
    await client.json({
      method: "PATCH",
      path: objectPath(PODS, pipes, pod),
      patchType: "application/merge-patch+json",
      body: { metadata },
    });
  }
}
