import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { podRequests } from "../../../src/capacity/pod-requests.ts";
import { parseQuantity } from "../../../src/domain/quantity.ts";
import type { Container, PodSpec } from "../../../src/kube/pods.ts";

type Requests = Readonly<Record<string, string>>;
type InitContainer = NonNullable<PodSpec["initContainers"]>[number];

function container(requests: Requests, limits: Requests = {}): Container {
  return { name: "container", resources: { requests, limits } };
}

function init(cpu: string): InitContainer {
  return container({ cpu });
}

function sidecar(cpu: string): InitContainer {
  return { ...init(cpu), restartPolicy: "Always" };
}

function cpu(quantity: string): bigint | undefined {
  return parseQuantity(quantity);
}

describe("the requests of a pod", () => {
  it.each<readonly [string, Partial<PodSpec>, string]>([
    ["equal the requests of its container", {}, "4"],
    [
      "are the sum over all containers",
      { containers: [container({ cpu: "4" }), container({ cpu: "100m" })] },
      "4100m",
    ],
    ["equal the limits if there are no requests", { containers: [container({}, { cpu: "2" })] }, "2"],
    ["are zero for a container without resources", { containers: [{ name: "container" }] }, "0"],
    ["ignore an init container that requests less", { initContainers: [init("3")] }, "4"],
    [
      "equal the requests of an init container that requests more",
      { initContainers: [init("3"), init("6")] },
      "6",
    ],
    ["include sidecars", { initContainers: [sidecar("1")] }, "5"],
    [
      "include the sidecars before an init container, but not those after it",
      { initContainers: [sidecar("1"), init("6"), sidecar("500m")] },
      "7",
    ],
    [
      "equal the requests of the containers and sidecars if their sum is larger",
      { initContainers: [init("4"), sidecar("1")] },
      "5",
    ],
    ["include the overhead", { overhead: { cpu: "250m" } }, "4250m"],
    [
      "equal the pod-level requests, if there are any, plus the overhead",
      { resources: { requests: { cpu: "9" } }, overhead: { cpu: "1" } },
      "10",
    ],
  ])("%s", (_, changes, expected) => {
    const spec = { containers: [container({ cpu: "4" })], ...changes };
    expect(podRequests(spec).cpu).toBe(cpu(expected));
  });

  it("are computed for memory in the same way as for CPU", () => {
    const spec = {
      containers: [container({ cpu: "4", memory: "16Gi" })],
      initContainers: [{ ...container({ memory: "512Mi" }), restartPolicy: "Always" }],
    };
    expect(podRequests(spec)).toEqual({ cpu: cpu("4"), memory: parseQuantity("16.5Gi") });
  });

  it("never decrease when a container is added anywhere", () => {
    const amount = fc.integer({ min: 0, max: 9000 }).map((millicores) => `${millicores}m`);
    const started = fc.array(fc.oneof(amount.map(init), amount.map(sidecar)), { maxLength: 5 });
    const containers = fc.array(
      amount.map((each) => container({ cpu: each })),
      { minLength: 1, maxLength: 3 },
    );
    fc.assert(
      fc.property(
        started,
        containers,
        fc.oneof(amount.map(init), amount.map(sidecar)),
        fc.nat(5),
        (...given) => {
          const [initContainers, running, added, at] = given;
          const before = podRequests({ containers: running, initContainers });
          const after = podRequests({
            containers: running,
            initContainers: initContainers.toSpliced(at, 0, added),
          });
          expect(after.cpu >= before.cpu).toBe(true);
        },
      ),
    );
  });
});
