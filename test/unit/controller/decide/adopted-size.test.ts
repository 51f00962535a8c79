import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { specForAdoption } from "../../../../src/controller/decide/created-spec.ts";
import { decide } from "../../../../src/controller/decide/decide.ts";
import { toPipeView } from "../../../../src/controller/observe/workloads/deployment.ts";
import { allSizes, DEFAULT_MAXIMUM_CORES, sizeOfCores } from "../../../../src/domain/size.ts";
import type { Tier } from "../../../../src/domain/tier.ts";
import type { Container } from "../../../../src/kube/pods.ts";
import { assessmentsIn, summaries } from "../../../support/fixtures/decisions.ts";
import { pipeDeployment } from "../../../support/fixtures/pipe.ts";
import { aScaling, aSnapshot, DECIDE_OPTIONS } from "../../../support/fixtures/snapshot.ts";

const TIER: Tier = { name: "scale", defaultSize: sizeOfCores(2), maximumSize: sizeOfCores(24) };

/** The largest size of a platform without the setting. */
const MAXIMUM = sizeOfCores(DEFAULT_MAXIMUM_CORES);

type Resources = NonNullable<Container["resources"]>;

/** Running pipes whose containers have these resources. */
function pipes(...all: readonly (Resources | undefined)[]) {
  return all.map((resources, index) => {
    const made = pipeDeployment({ name: `pipe-${index}`, namespace: "pipes", serviceId: "service" });
    const containers = [{ name: "pipe", ...(resources ? { resources } : {}) }];
    const template = { ...made.spec.template, spec: { containers } };
    const metadata = { ...made.metadata, uid: `uid-${index}`, resourceVersion: "1", generation: 1 };
    return toPipeView({ ...made, metadata, spec: { ...made.spec, template } });
  });
}

function requests(cpu: string, memory: string): Resources {
  return { requests: { cpu, memory }, limits: { memory } };
}

function adopted(...all: readonly (Resources | undefined)[]) {
  return specForAdoption(pipes(...all), TIER, MAXIMUM, false);
}

function cores(count: number) {
  return { replicaCpuMillicores: count * 1000, replicaMemoryGb: count * 4 };
}

describe("the first PipeScaling of a service", () => {
  it.each<[string, readonly (Resources | undefined)[], object]>([
    ["asks for the size of its pipe", [requests("2", "8Gi")], cores(2)],
    ["asks for the tier's default size if its pipes have no resources", [undefined, {}], {}],
    ["rounds up to a valid size", [requests("500m", "3Gi")], cores(1)],
    ["rounds CPU up", [requests("2100m", "1Gi")], cores(3)],
    ["rounds memory up", [requests("1", "4097Mi")], cores(2)],
    [
      "holds the largest CPU and the largest memory of several pipes",
      [requests("3", "1Gi"), requests("1", "20Gi")],
      cores(5),
    ],
    ["takes a CPU request alone", [{ requests: { cpu: "3" } }], cores(3)],
    ["takes a memory request alone", [{ requests: { memory: "9Gi" } }], cores(3)],
    [
      "takes limits for absent requests, as Kubernetes does",
      [{ limits: { cpu: "3", memory: "2Gi" } }],
      cores(3),
    ],
    ["takes a CPU limit for an absent CPU request", [{ limits: { cpu: "3" } }], cores(3)],
    [
      "ignores a CPU limit above the request, which stays",
      [{ ...requests("1", "4Gi"), limits: { cpu: "8", memory: "4Gi" } }],
      cores(1),
    ],
    [
      "holds a memory limit above the request",
      [{ requests: { cpu: "1", memory: "2Gi" }, limits: { memory: "10Gi" } }],
      cores(3),
    ],
    ["counts pipes without resources with the tier's default", [requests("1", "4Gi"), undefined], cores(2)],
    [
      "is suspended if the platform offers no such size",
      [requests("32", "64Gi")],
      { ...cores(32), suspend: true },
    ],
    [
      "is suspended if no platform offers such a size",
      [requests("200", "64Gi")],
      { ...cores(128), suspend: true },
    ],
  ])("%s", (_, resources, spec) => {
    expect(adopted(...resources)).toEqual(spec);
  });

  it("holds the largest container of a pipe until an annotation names the one to resize", () => {
    const made = pipeDeployment({ name: "a", namespace: "pipes", serviceId: "service" });
    const containers = [
      { name: "proxy", resources: requests("100m", "1Gi") },
      { name: "pipe", resources: requests("3", "2Gi") },
    ];
    const template = { ...made.spec.template, spec: { containers } };
    const metadata = { ...made.metadata, uid: "uid", resourceVersion: "1", generation: 1 };
    const pipe = toPipeView({ ...made, metadata, spec: { ...made.spec, template } });
    expect(pipe.container).toHaveProperty("problem");
    expect(specForAdoption([pipe], TIER, MAXIMUM, false)).toEqual(cores(3));
  });

  it("asks for more than the tier's maximum, which the controller applies", () => {
    const tier = { ...TIER, maximumSize: sizeOfCores(4) };
    const snapshot = aSnapshot(pipes(requests("8", "32Gi")), {
      scaling: undefined,
      tier: { ok: true, value: tier },
    });
    expect(summaries(decide(snapshot, DECIDE_OPTIONS).actions)).toEqual([
      `create ${JSON.stringify(cores(8))}`,
    ]);
    const { sizing } = decide({ ...snapshot, scaling: aScaling(8) }, DECIDE_OPTIONS);
    expect(sizing?.desired).toEqual({ size: sizeOfCores(4), source: "TierLimit" });
  });

  it("is suspended if it replaces a deleted one and would resize a pipe", () => {
    const [two, four] = [requests("2", "8Gi"), requests("4", "16Gi")];
    expect(specForAdoption(pipes(two, two), TIER, MAXIMUM, true)).toEqual(cores(2));
    expect(specForAdoption(pipes(two, four), TIER, MAXIMUM, true)).toEqual({ ...cores(4), suspend: true });
  });
});

const amounts = fc.record({
  millicores: fc.integer({ min: 1, max: MAXIMUM.cpuMillicores }),
  mebibytes: fc.integer({ min: 1, max: MAXIMUM.memoryGib * 1024 }),
});
const services = fc.array(amounts, { minLength: 1, maxLength: 5 });

it("the first PipeScaling asks for the smallest valid size that holds what every pipe requests", () => {
  fc.assert(
    fc.property(services, (all) => {
      const spec = adopted(
        ...all.map(({ millicores, mebibytes }) => requests(`${millicores}m`, `${mebibytes}Mi`)),
      );
      const holdsAll = ({ cpuMillicores, memoryGib }: { cpuMillicores: number; memoryGib: number }) =>
        all.every((each) => each.millicores <= cpuMillicores && each.mebibytes <= memoryGib * 1024);
      const [smallest] = allSizes().filter(holdsAll);
      expect(spec).toEqual(cores((smallest?.cpuMillicores ?? 0) / 1000));
    }),
  );
});

it("the first PipeScaling takes nothing from any pipe, and changes nothing if all have the same valid size", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 24 }), fc.integer({ min: 1, max: 4 }), (count, length) => {
      const same = pipes(...Array.from({ length }, () => requests(`${count}`, `${count * 4}Gi`)));
      const decision = decide(aSnapshot(same, { scaling: aScaling(count) }), DECIDE_OPTIONS);
      expect(specForAdoption(same, TIER, MAXIMUM, false)).toEqual(cores(count));
      expect(assessmentsIn(decision).map(({ state }) => state)).not.toContain("waiting");
    }),
  );
});
