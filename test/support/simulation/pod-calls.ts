import type { KubeRequest } from "../../../src/kube/client.ts";
import type { ObjectMeta } from "../../../src/kube/objects.ts";
import type { Pod } from "../../../src/kube/pods.ts";
import type { FakeClock } from "../fakes/fake-clock.ts";
import type { SimulatedKubelets } from "./kubelets.ts";
import { admitted } from "./limits.ts";
import { CONTROLLER, managedFieldsAfter, type Writer } from "./managed-fields.ts";
import { checked, isSame, parsed, timeAt } from "./objects.ts";
import { patched } from "./patch.ts";
import type { SimulatedPod } from "./pod-status.ts";
import type { SimulatedPods } from "./pods.ts";
import { targetOf } from "./selectors.ts";

export interface PodCallsOptions {
  readonly clock: FakeClock;
  readonly pods: SimulatedPods;
  readonly kubelets: SimulatedKubelets;
  /** A write of the controller. */
  readonly wrote: (line: string) => void;
  /** The controller tried to resize a pod. */
  readonly tried: (pod: Pod, spec: Pod["spec"], isAccepted: boolean) => void;
}

/** The part of a simulated API server that takes the writes to pods. */
export class SimulatedPodCalls {
  readonly #options: PodCallsOptions;

  constructor(options: PodCallsOptions) {
    this.#options = options;
  }

  /** A call of the controller. */
  call(request: KubeRequest): Pod {
    const { method = "GET", body, query } = request;
    const { name = "", resource } = targetOf(request);
    if (method === "GET") return checked(this.#find(name), {}, method);
    if (method === "DELETE") return this.#callDelete(name, parsed(body));
    const isDryRun = query?.["dryRun"] !== undefined;
    return resource === "pods/resize"
      ? this.#callResize(name, parsed(body), isDryRun)
      : this.#callLabels(name, parsed(body), isDryRun);
  }

  /** Another writer resizes the containers of a pod, or one of them, such as a right-sizer. */
  resize(name: string, resources: object, writer: Writer, container?: string): void {
    const pod = this.#find(name);
    const containers = (pod?.spec.containers ?? [])
      .filter((each) => each.name === (container ?? each.name))
      .map((each) => ({ name: each.name, resources }));
    if (pod) this.#resize(pod, { containers }, { ...writer, subresource: "resize" });
  }

  #callResize(name: string, { metadata, spec }: Pod, isDryRun: boolean): Pod {
    const { pods, tried, wrote } = this.#options;
    const before = checked(this.#find(name), metadata);
    const asked: SimulatedPod["spec"] = parsed(patched(before.spec, spec, true));
    const admission = pods.admit(asked, before.metadata.namespace, before);
    tried(before, asked, "spec" in admission);
    const wanted = admitted(admission, "PATCH");
    if (isDryRun) return { ...before, spec: wanted };
    const after = this.#resize(before, wanted, { ...CONTROLLER, subresource: "resize" });
    if (after !== before) wrote(`${name} ${after.spec.containers[0]?.resources?.requests?.["cpu"]}`);
    return after;
  }

  #resize(before: SimulatedPod, patch: object, writer: Writer): SimulatedPod {
    const spec: SimulatedPod["spec"] = parsed(patched(before.spec, patch, true));
    if (isSame(spec, before.spec)) return before;
    const { name, generation = 0 } = before.metadata;
    this.#options.kubelets.resized(name);
    return this.#put(
      before,
      { ...before, spec, metadata: { ...before.metadata, generation: generation + 1 } },
      writer,
    );
  }

  #callLabels(name: string, { metadata }: Pod, isDryRun: boolean): Pod {
    const before = checked(this.#find(name), metadata);
    const { labels = {} } = metadata;
    const after: SimulatedPod = parsed(patched(before, { metadata: { labels } }, true));
    if (isDryRun) return after;
    this.#options.wrote(`${name} labeled`);
    return this.#put(before, after, CONTROLLER);
  }

  #callDelete(name: string, { preconditions = {} }: { readonly preconditions?: Partial<ObjectMeta> }): Pod {
    const { pods, wrote } = this.#options;
    const pod = checked(this.#find(name), preconditions, "DELETE");
    wrote(`${name} deleted`);
    pods.delete(name, pods.terminationMs(pod));
    return pod;
  }

  #find(name: string): SimulatedPod | undefined {
    return this.#options.pods.objects.get(name);
  }

  #put(before: SimulatedPod, after: SimulatedPod, writer: Writer): SimulatedPod {
    const { clock, pods } = this.#options;
    const managedFields = managedFieldsAfter(before, after, writer, timeAt(clock.now())) ?? [];
    return pods.put({ ...after, metadata: { ...after.metadata, managedFields } }, writer);
  }
}
