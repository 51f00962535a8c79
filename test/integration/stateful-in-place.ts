import { waitFor } from "@pipe-scaling/local-cluster/wait";
import type { StatefulSet } from "../../src/kube/workloads.ts";
import type { TestEnvironment } from "../support/test-environment.ts";
import { ownsPartition } from "./stateful-commit.ts";
import { Loaders } from "./stateful-loader.ts";

export const IN_PLACE = { resizeStrategy: "InPlaceOrRollout" } as const;

/** StatefulSets whose pods a controller resizes in place. */
export class InPlaceLoaders extends Loaders {
  readonly #environment: TestEnvironment;

  constructor(environment: TestEnvironment) {
    super(environment);
    this.#environment = environment;
  }

  /** Waits until the StatefulSet has no hold, all pods count as updated, and the controller has left its partition. */
  settled(name?: string): Promise<StatefulSet> {
    return waitFor(
      async () => {
        const object = await this.read(name);
        const { status, spec, metadata } = object;
        const isSeen = status?.observedGeneration === metadata.generation;
        const isUpdated = status?.updatedReplicas === spec.replicas;
        return isSeen && isUpdated && !ownsPartition(object) ? object : undefined;
      },
      { what: "the commit to end" },
    );
  }

  /** Starts a controller for a StatefulSet. Resolves with the UIDs of its pods when they run. */
  async running(options: Parameters<Loaders["create"]>[0] = {}): Promise<readonly string[]> {
    await this.create(options);
    await this.#environment.startController(IN_PLACE);
    await this.ready();
    return this.uids();
  }
}
