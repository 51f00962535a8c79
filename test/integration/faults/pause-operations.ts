import { DEPLOYMENTS, objectPath } from "../../../src/kube/paths.ts";
import type { Kinds } from "./history.ts";
import type { Operation, OtherWriters } from "./operation.ts";
import { isPausedForCommit } from "./pipe-view.ts";
import type { ServiceUnderTest } from "./service-under-test.ts";

/** On Deployments that an owner has paused: the one that ends the pause may be another service, after a move. */
const PAUSED_BY_OWNER = "paused-by-owner";

/** Owners that pause and resume their Deployments, and managed fields that are lost. */
export class PauseOperations implements OtherWriters {
  readonly operations: readonly Operation[] = [
    this.#pause,
    this.#applyPause,
    this.#resume,
    this.#resume,
    this.#forgetManagers,
    this.#forgetManagers,
  ].map((operation) => operation.bind(this));
  readonly #service: ServiceUnderTest;

  constructor(service: ServiceUnderTest) {
    this.#service = service;
    service.onCalm(() => this.end());
  }

  /** Owners resume what they have paused, but nothing that the controller has paused. */
  async end(): Promise<void> {
    for (const deployment of await this.#service.deployments()) {
      const { name, annotations = {} } = deployment.metadata;
      const isTheirs = isPausedByOthers(deployment) || PAUSED_BY_OWNER in annotations;
      if (deployment.spec.paused && isTheirs) await this.#resumePipe(name);
    }
  }

  #pause(): Promise<unknown> {
    return this.#service.withPipe(async (name) => {
      const metadata = { annotations: { [PAUSED_BY_OWNER]: "true" } };
      await this.#service.environment.patchPipe(name, { metadata, spec: { paused: true } });
      return name;
    });
  }

  /** After a server-side apply, the owner also owns a pause of the controller. */
  #applyPause(): Promise<unknown> {
    const { client, pipes } = this.#service.environment;
    return this.#service.withPipe(async (name) => {
      const metadata = { name, annotations: { [PAUSED_BY_OWNER]: "true" } };
      await client.json({
        method: "PATCH",
        path: objectPath(DEPLOYMENTS, pipes, name),
        patchType: "application/apply-patch+yaml",
        query: { fieldManager: "owner", force: true },
        body: { apiVersion: "apps/v1", kind: "Deployment", metadata, spec: { paused: true } },
      });
      return name;
    });
  }

  #resume(): Promise<unknown> {
    return this.#service.withPipe(async (name) => {
      await this.#resumePipe(name);
      return name;
    });
  }

  /** Also changes an annotation, which shows the judge that the controller did not make this write. */
  async #resumePipe(name: string): Promise<void> {
    const annotations = { resumed: `${this.#service.random()}`, [PAUSED_BY_OWNER]: null };
    await this.#service.environment.patchPipe(name, { metadata: { annotations }, spec: { paused: null } });
  }

  /** A reset, as some tools do it. Later updates of such an object are not tracked. */
  #forgetManagers(): Promise<unknown> {
    const { client, pipes } = this.#service.environment;
    return this.#service.withPipe(async (name) => {
      const before = await client.json<Kinds["Deployment"]>({
        method: "PATCH",
        path: objectPath(DEPLOYMENTS, pipes, name),
        patchType: "application/merge-patch+json",
        query: { fieldManager: "owner" },
        body: { metadata: { annotations: { forgotten: `${this.#service.random()}` } } },
      });
      const isPaused = isPausedByOthers(before);
      const { resourceVersion } = before.metadata;
      await client.json({
        method: "PATCH",
        path: objectPath(DEPLOYMENTS, pipes, name),
        patchType: "application/merge-patch+json",
        body: {
          metadata: {
            managedFields: [{}],
            resourceVersion,
            ...(isPaused ? { annotations: { [PAUSED_BY_OWNER]: "true" } } : {}),
          },
        },
      });
      return name;
    });
  }
}

/** False without managed fields, because then the writer is unknown. */
function isPausedByOthers(deployment: Pick<Kinds["Deployment"], "metadata" | "spec">): boolean {
  const { metadata, spec } = deployment;
  return (
    spec.paused === true &&
    (metadata.managedFields ?? []).length > 0 &&
    !isPausedForCommit({ metadata, spec })
  );
}
