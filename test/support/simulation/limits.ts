import { parseQuantity } from "../../../src/domain/quantity.ts";
import { KubeApiError } from "../../../src/kube/errors.ts";
import type { Container, Pod } from "../../../src/kube/pods.ts";

/** A pod that the API server stores, or why it rejects it. */
export type Admission<T> = { readonly spec: T } | { readonly code: 403 | 422; readonly message: string };

/** A ResourceQuota and a LimitRange in the namespace of the pipes, as far as they are about CPU. */
export class SimulatedLimits {
  #quotaMillicores: number | undefined;
  #maxMillicores: number | undefined;
  #defaultMillicores: number | undefined;
  /** Increases with each change of the limits. */
  version = 0;

  /** Sets or removes, in millicores: the total of all requests, the most per container, and the default CPU limit. */
  set(limits: { readonly quota?: number; readonly max?: number; readonly default?: number }): void {
    this.#quotaMillicores = limits.quota;
    this.#maxMillicores = limits.max;
    this.#defaultMillicores = limits.default;
    this.version += 1;
  }

  /** Returns what the API server makes of a new pod, or of a pod that is resized. @param all pods of the namespace */
  admit<T extends Spec>(spec: T, all: () => readonly Pod[], replaced?: Pod): Admission<T> {
    const limited = this.#withDefault(spec);
    const [largest = 0] = limited.containers.map((each) => requestOf(each)).sort((a, b) => b - a);
    if (this.#maxMillicores !== undefined && largest > this.#maxMillicores)
      return refusal(
        403,
        `maximum cpu usage per Container is ${cpu(this.#maxMillicores)}, but request is ${cpu(largest)}`,
      );
    const above = limited.containers.find((each) => requestOf(each) > limitOf(each));
    if (above)
      return refusal(
        422,
        `Invalid value: "${cpu(requestOf(above))}": must be less than or equal to cpu limit of ${cpu(limitOf(above))}`,
      );
    const refused = this.#quotaProblem(limited, all, replaced);
    return refused === undefined ? { spec: limited } : refusal(403, refused);
  }

  #quotaProblem(spec: Spec, all: () => readonly Pod[], replaced: Pod | undefined): string | undefined {
    const hard = this.#quotaMillicores;
    if (hard === undefined) return undefined;
    const added = millicoresOf(spec) - (replaced ? millicoresOf(replaced.spec) : 0);
    const used = all()
      .filter(({ status }) => status?.phase !== "Failed")
      .reduce((sum, each) => sum + millicoresOf(each.spec), 0);
    if (added <= 0 || used + added <= hard) return undefined;
    const amounts = { requested: added, used, limited: hard };
    const listed = Object.entries(amounts).map(([what, amount]) => `${what}: requests.cpu=${cpu(amount)}`);
    return `exceeded quota: small, ${listed.join(", ")}`;
  }

  #withDefault<T extends Spec>(spec: T): T {
    const millicores = this.#defaultMillicores;
    if (millicores === undefined) return spec;
    const containers = spec.containers.map(({ resources = {}, ...each }) => ({
      ...each,
      resources: { ...resources, limits: { cpu: cpu(millicores), ...resources.limits } },
    }));
    return { ...spec, containers };
  }
}

/** @throws KubeApiError if the pod was refused */
export function admitted<T>(admission: Admission<T>, method: string): T {
  if ("spec" in admission) return admission.spec;
  const { code, message } = admission;
  throw new KubeApiError(method, code, JSON.stringify({ message }));
}

/** The CPU requests of a pod. */
export function millicoresOf({ containers }: { readonly containers: readonly Sized[] }): number {
  return containers.reduce((sum, each) => sum + requestOf(each), 0);
}

/** The CPU that the kubelet has granted a pod: that of its spec until it runs. */
export function allocatedMillicoresOf({ spec, status }: Pod): number {
  const { containerStatuses } = status ?? {};
  if (!containerStatuses) return millicoresOf(spec);
  return containerStatuses.reduce(
    (sum, each) => sum + millicores(each.allocatedResources?.["cpu"] ?? "0"),
    0,
  );
}

type Spec = Pod["spec"];
type Sized = Pick<Container, "resources">;

function requestOf({ resources }: Sized): number {
  return millicores(resources?.requests?.["cpu"] ?? "0");
}

function limitOf({ resources }: Sized): number {
  const limit = resources?.limits?.["cpu"];
  return limit === undefined ? Number.POSITIVE_INFINITY : millicores(limit);
}

function millicores(quantity: string): number {
  return Number((parseQuantity(quantity) ?? 0n) / 1_000_000n);
}

function cpu(amount: number): string {
  return amount % 1000 === 0 ? `${amount / 1000}` : `${amount}m`;
}

function refusal(code: 403 | 422, message: string): Admission<never> {
  return { code, message };
}
