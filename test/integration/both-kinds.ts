import { START_AFTER_ANNOTATION } from "@pipe-scaling/local-cluster/stages";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { expect } from "vitest";
import { SERVICE_LABEL, TYPE_LABEL } from "../../src/controller/names.ts";
import type { Pod } from "../../src/kube/pods.ts";
import type { PipeOptions } from "../support/fixtures/pipe.ts";
import { resourcesOf, type TestEnvironment } from "../support/test-environment.ts";
import { committed } from "./stateful-commit.ts";
import { cpuOf, Loaders } from "./stateful-loader.ts";

const STATEFUL_SET = "loader";

/** The canary is the first pipe by name, whatever its kind is. */
export const CANARIES = [
  { canary: "Deployment", deployment: "cdc" },
  { canary: "StatefulSet", deployment: "pipe-cdc" },
] as const;

/** A service with a Deployment of two pods and a StatefulSet of three. */
export class BothKinds {
  readonly #environment: TestEnvironment;
  readonly #loaders: Loaders;
  readonly #deployment: string;
  readonly #partition: number;

  /** @param partition that the owner set in the StatefulSet */
  constructor(environment: TestEnvironment, deployment: string, partition = 0) {
    this.#environment = environment;
    this.#loaders = new Loaders(environment);
    this.#deployment = deployment;
    this.#partition = partition;
  }

  /** Creates both with one core, and waits until their five containers run, and a controller has seen both. */
  async create(options: Pick<PipeOptions, "podAnnotations" | "image"> = {}): Promise<void> {
    const { serviceId } = this.#environment;
    const podLabels = { [SERVICE_LABEL]: serviceId, [TYPE_LABEL]: "database" };
    const rollingUpdate = { partition: this.#partition };
    await this.#loaders.create({ updateStrategy: { type: "RollingUpdate", rollingUpdate }, ...options });
    const deployment = { name: this.#deployment, cores: 1, replicas: 2, podLabels, ...options };
    await this.#environment.createPipe(deployment);
    await this.#loaders.ready();
    const areRunning = async () => {
      const containers = await this.containers();
      return containers.length === 5 && containers.every((each) => each.endsWith(" 0"));
    };
    await waitFor(areRunning, { what: "five containers to run" });
  }

  /**
   * Requests a size, and waits until all pods and templates have it, the StatefulSet is of one revision, and its owner has
   * its partition.
   *
   * @param method by which both must get the size
   * @returns the name of the revision
   */
  async rescale(cores: number, method: "InPlace" | "Rollout"): Promise<string | undefined> {
    await this.#environment.requestSize(cores);
    const { status } = await this.#environment.waitForCondition("Ready", "True");
    expect(status?.pipes).toMatchObject({
      summary: "2/2",
      resizedBy: { [this.#deployment]: method, [`statefulset/${STATEFUL_SET}`]: method },
    });
    const { status: revisions } = await committed(this.#loaders, cores, this.#partition);
    expect(revisions?.currentRevision).toBe(revisions?.updateRevision);
    const deployment = await this.#environment.pipe(this.#deployment);
    expect(resourcesOf(deployment)).toBe(`${cores} ${cores * 4}Gi ${cores * 4}Gi`);
    const pods = await this.#loaders.pods(this.#deployment);
    expect(pods.map(cpuOf)).toEqual([`${cores}`, `${cores}`]);
    return revisions?.updateRevision;
  }

  /** The UIDs of the pods with the IDs and restart counts of their containers, which a restart or a replacement changes. */
  async containers(): Promise<readonly string[]> {
    const pods = [...(await this.#loaders.pods()), ...(await this.#loaders.pods(this.#deployment))];
    return pods.map(({ metadata, status }) => {
      const { containerID, restartCount } = status?.containerStatuses?.[0] ?? {};
      return `${metadata.uid} ${containerID} ${restartCount}`;
    });
  }

  /** Expects that no pod of the other pipe was created before all pods of the canary were ready. */
  async expectCanaryFirst(): Promise<void> {
    const [canary, other] = [STATEFUL_SET, this.#deployment].toSorted();
    const [readyAt] = (await this.#loaders.pods(canary)).map(readySince).toSorted().toReversed();
    const [createdAt] = (await this.#loaders.pods(other))
      .map(({ metadata }) => metadata.creationTimestamp)
      .toSorted();
    expect(Date.parse(createdAt ?? "")).toBeGreaterThanOrEqual(Date.parse(readyAt ?? ""));
  }
}

/** To the second, like the times at which pods were created. */
function readySince({ status }: Pod): string {
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  return ready && "lastTransitionTime" in ready ? `${ready.lastTransitionTime}` : "";
}

/** Expects that both keep their pods with a larger and a smaller size, twice. The controller's rights are restricted. */
export async function expectBothResizedInPlace(
  environment: TestEnvironment,
  deployment: string,
  partition: number,
): Promise<void> {
  const pipes = new BothKinds(environment, deployment, partition);
  // Much shorter than in production.
  const timeouts = { smallerMemoryMs: 1000 };
  await environment.startController({ resizeStrategy: "InPlaceOrRollout" }, { timeouts });
  await pipes.create();
  const before = await pipes.containers();
  const revisions = new Set<string | undefined>();
  for (const cores of [4, 1, 4, 1]) {
    revisions.add(await pipes.rescale(cores, "InPlace"));
    expect(await pipes.containers()).toEqual(before);
  }
  // An earlier size has its earlier revision again.
  expect(revisions.size).toBe(2);
  expect(environment.errors).toEqual([]);
}

/** Expects that both are rolled out to a larger and a smaller size, the canary first. */
export async function expectBothRolledOut(environment: TestEnvironment, deployment: string): Promise<void> {
  const pipes = new BothKinds(environment, deployment);
  await environment.startController({ resizeStrategy: "Rollout" });
  await pipes.create({ podAnnotations: { [START_AFTER_ANNOTATION]: "1s" } });
  for (const cores of [4, 1]) {
    await pipes.rescale(cores, "Rollout");
    await pipes.expectCanaryFirst();
  }
  expect(environment.errors).toEqual([]);
}
