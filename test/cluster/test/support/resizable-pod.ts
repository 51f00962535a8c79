import { z } from "zod";
import type { Cluster } from "../../cluster.ts";
import { apply, kubectl } from "../../kubectl.ts";
import { waitFor } from "../../wait.ts";

const list = z.record(z.string(), z.string());
const resources = z.object({ requests: list.optional(), limits: list.optional() });
const podSchema = z.object({
  metadata: z.object({ generation: z.number() }),
  spec: z.object({ containers: z.array(z.object({ name: z.string(), resources })) }),
  status: z.object({
    observedGeneration: z.number().optional(),
    conditions: z
      .array(z.object({ type: z.string(), status: z.string(), reason: z.string().optional() }))
      .default([]),
    containerStatuses: z
      .array(
        z.object({
          containerID: z.string().optional(),
          restartCount: z.number(),
          ready: z.boolean(),
          allocatedResources: list.optional(),
          resources: resources.optional(),
        }),
      )
      .default([]),
  }),
});

export interface PodSize {
  readonly cpu: string;
  readonly memory: string;
}

/** The state of a resize, by the condition of the pod about it. */
export type ResizeState = "none" | "InProgress" | "Error" | "Deferred" | "Infeasible";

/** A pod with one container that a test resizes. */
export class ResizablePod {
  readonly #cluster: Cluster;
  readonly #namespace: string;
  readonly #name: string;

  constructor(cluster: Cluster, namespace: string, name: string) {
    this.#cluster = cluster;
    this.#namespace = namespace;
    this.#name = name;
  }

  /** Creates a pod whose limits equal its requests, and returns when it is ready. */
  static async create(
    cluster: Cluster,
    namespace: string,
    name: string,
    size: PodSize,
    annotations: Record<string, string> = {},
  ): Promise<ResizablePod> {
    const pod = new ResizablePod(cluster, namespace, name);
    const container = { name: "pipe", image: "pipe", resources: { requests: size, limits: size } };
    await apply(cluster, [
      {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name, namespace, annotations },
        spec: { containers: [container] },
      },
    ]);
    await pod.#becomes("to be ready", 60_000, ({ ready }) => ready);
    return pod;
  }

  async view() {
    const { metadata, spec, status } = podSchema.parse(
      JSON.parse(await this.#kubectl("get", "pod", this.#name, "-o", "json")),
    );
    const [container, reported] = [spec.containers[0], status.containerStatuses[0]];
    const condition = status.conditions.find(({ type }) => type.startsWith("PodResize"));
    return {
      /** The kubelet has observed the last resize, even if it has not made it. */
      isObserved: status.observedGeneration === metadata.generation,
      resize: condition ? condition.reason || condition.type.replace("PodResize", "") : "none",
      ready: status.conditions.some(({ type, status: value }) => type === "Ready" && value === "True"),
      containerID: reported?.containerID,
      restartCount: reported?.restartCount,
      requested: container?.resources.requests,
      allocated: reported?.allocatedResources,
      actual: reported?.resources?.limits,
    };
  }

  /** Patches pods/resize, and returns when the API server has accepted it. */
  async resize(size: PodSize): Promise<void> {
    const containers = [{ name: "pipe", resources: { requests: size, limits: size } }];
    const patch = JSON.stringify({ spec: { containers } });
    await this.#kubectl("patch", "pod", this.#name, "--subresource=resize", "-p", patch);
  }

  /** Sets the annotation `name=value`, or removes it: `name-`. */
  async annotate(change: string): Promise<void> {
    await this.#kubectl("annotate", "pod", this.#name, "--overwrite", change);
  }

  async delete(): Promise<void> {
    await this.#kubectl("delete", "pod", this.#name, "--ignore-not-found");
  }

  async waitForNotReady(): Promise<void> {
    await this.#becomes("not to be ready", 30_000, ({ ready }) => !ready);
  }

  /** Waits until the kubelet has observed the last resize and reports `state`. */
  async waitForState(state: ResizeState, timeoutMs = 30_000) {
    return await this.#becomes(
      `to report the resize as ${state}`,
      timeoutMs,
      ({ isObserved, resize }) => isObserved && resize === state,
    );
  }

  /** Waits until the kubelet has allocated `size`, even if it is not in effect yet. */
  async waitForAllocation(size: PodSize): Promise<void> {
    await this.#becomes(
      `to be allocated ${JSON.stringify(size)}`,
      30_000,
      ({ isObserved, allocated }) => isObserved && isSize(allocated, size),
    );
  }

  /** Waits until all fields of the status prove that the resize to `size` has finished. */
  async waitForSize(size: PodSize, timeoutMs = 30_000) {
    return await this.#becomes(
      `to be resized to ${JSON.stringify(size)}`,
      timeoutMs,
      ({ isObserved, resize, allocated, actual }) =>
        isObserved && resize === "none" && isSize(allocated, size) && isSize(actual, size),
    );
  }

  async #becomes(
    what: string,
    timeoutMs: number,
    is: (view: Awaited<ReturnType<ResizablePod["view"]>>) => boolean,
  ) {
    return await waitFor(
      async () => {
        const view = await this.view();
        if (is(view)) return view;
        throw new Error(JSON.stringify(view));
      },
      { what: `pod ${this.#name} ${what}`, timeoutMs, intervalMs: 20 },
    );
  }

  async #kubectl(...args: string[]): Promise<string> {
    return await kubectl(this.#cluster, ["-n", this.#namespace, ...args]);
  }
}

function isSize(list: Record<string, string> | undefined, { cpu, memory }: PodSize): boolean {
  return list?.["cpu"] === cpu && list["memory"] === memory;
}
