import {
  RESIZE_AFTER_ANNOTATION,
  RESIZE_OUTCOME_ANNOTATION,
  RESIZE_OUTCOMES,
} from "@pipe-scaling/local-cluster/resize-stages";
import type { Pod } from "../../../src/kube/objects.ts";
import { collectionPath, DEPLOYMENTS, objectPath, PODS } from "../../../src/kube/paths.ts";
import type { OtherWriters } from "./operations.ts";
import type { Operation, ServiceUnderTest } from "./service-under-test.ts";

/** Maximum time that a resize of a pod takes. */
const RESIZE_MS = 3000;

/** Random outcomes of resizes, and operations of owners: pauses, other strategies, deleted pods. */
export class InPlaceOperations implements OtherWriters {
  readonly operations: readonly Operation[] = [
    this.#setStrategy,
    this.#pause,
    this.#applyPause,
    this.#resume,
    this.#resume,
    this.#hinderResize,
    this.#slowResize,
    this.#allowResizes,
    this.#allowResizes,
    this.#deletePod,
  ].map((operation) => operation.bind(this));
  readonly #service: ServiceUnderTest;

  constructor(service: ServiceUnderTest) {
    this.#service = service;
  }

  async end(): Promise<void> {
    for (const name of this.#service.pipes) await this.#resumePipe(name);
    await this.#allowResizes();
  }

  async #setStrategy(): Promise<void> {
    const strategy = this.#service.pick(["InPlaceOrRollout", "InPlaceOrRollout", "Rollout", null]);
    await this.#service.environment.patchScaling({ strategy });
  }

  async #pause(): Promise<void> {
    await this.#service.withPipe((name) =>
      this.#service.environment.patchPipe(name, { spec: { paused: true } }),
    );
  }

  /** After a server-side apply, the owner also owns a pause of the controller. */
  async #applyPause(): Promise<void> {
    const { client, pipes } = this.#service.environment;
    await this.#service.withPipe((name) =>
      client.json({
        method: "PATCH",
        path: objectPath(DEPLOYMENTS, pipes, name),
        patchType: "application/apply-patch+yaml",
        query: { fieldManager: "owner", force: true },
        body: { apiVersion: "apps/v1", kind: "Deployment", metadata: { name }, spec: { paused: true } },
      }),
    );
  }

  async #resume(): Promise<void> {
    await this.#service.withPipe((name) => this.#resumePipe(name));
  }

  /** Also changes an annotation, which shows the judge that the controller did not make this write. */
  async #resumePipe(name: string): Promise<void> {
    const annotations = { resumed: `${this.#service.random()}` };
    await this.#service.environment.patchPipe(name, { metadata: { annotations }, spec: { paused: null } });
  }

  async #hinderResize(): Promise<void> {
    const outcome = RESIZE_OUTCOMES[this.#service.below(RESIZE_OUTCOMES.length)];
    await this.#annotateAnyPod({ [RESIZE_OUTCOME_ANNOTATION]: outcome });
  }

  async #slowResize(): Promise<void> {
    await this.#annotateAnyPod({ [RESIZE_AFTER_ANNOTATION]: `${this.#service.below(RESIZE_MS)}ms` });
  }

  /** Like new room on the nodes. */
  async #allowResizes(): Promise<void> {
    for (const { metadata } of await this.#pods()) {
      if (metadata.annotations?.[RESIZE_OUTCOME_ANNOTATION] === undefined) continue;
      await this.#annotate(metadata.name, { [RESIZE_OUTCOME_ANNOTATION]: null });
    }
  }

  async #deletePod(): Promise<void> {
    const { client, pipes } = this.#service.environment;
    const name = await this.#anyPod();
    if (name !== undefined) await client.json({ method: "DELETE", path: objectPath(PODS, pipes, name) });
  }

  async #annotateAnyPod(annotations: object): Promise<void> {
    const name = await this.#anyPod();
    if (name !== undefined) await this.#annotate(name, annotations);
  }

  async #anyPod(): Promise<string | undefined> {
    const names = (await this.#pods()).map(({ metadata }) => metadata.name).sort();
    return names[this.#service.below(names.length)];
  }

  async #pods(): Promise<readonly Pod[]> {
    const { client, pipes } = this.#service.environment;
    const path = collectionPath(PODS, pipes);
    return (await client.json<{ readonly items: readonly Pod[] }>({ path })).items;
  }

  async #annotate(pod: string, annotations: object): Promise<void> {
    const { client, pipes } = this.#service.environment;
    await client.json({
      method: "PATCH",
      path: objectPath(PODS, pipes, pod),
      patchType: "application/merge-patch+json",
      body: { metadata: { annotations } },
    });
  }
}
