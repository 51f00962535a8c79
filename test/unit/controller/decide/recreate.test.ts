import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { specForRecreation } from "../../../../src/controller/decide/created-spec.ts";
import { decide } from "../../../../src/controller/decide/decide.ts";
import { LAST_ROLLOUT_ANNOTATION } from "../../../../src/controller/names.ts";
import { formatLastRollout } from "../../../../src/controller/observe/last-rollout.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import { type Allotment, isSize } from "../../../../src/controller/observe/resources.ts";
import { toPipeView } from "../../../../src/controller/observe/workloads/deployment.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../../../src/crd/names.ts";
import type { PipeScalingSpec } from "../../../../src/crd/pipe-scaling.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import type { FieldsV1 } from "../../../../src/kube/objects.ts";
import { pipeDeployment } from "../../../support/fixtures/pipe.ts";
import {
  aPipe,
  aRollout,
  aScaling,
  aSnapshot,
  DECIDE_OPTIONS,
  NOW_MS,
  rollingTo,
} from "../../../support/fixtures/snapshot.ts";

const FOUR = { replicaCpuMillicores: 4000, replicaMemoryGb: 16 };

/** A pipe that the controller resized at this time and that has lost its annotation. */
function stripped(name: string, cores: number, agoMs = 0): PipeView {
  return aPipe(name, { size: sizeOfCores(cores), resizedAtMs: NOW_MS - agoMs });
}

describe("a PipeScaling that was deleted while no controller was watching", () => {
  it("is a new one if nothing shows that the controller ever resized a pipe", () => {
    expect(specForRecreation("service", [aPipe("a"), aPipe("b")])).toBeUndefined();
  });

  it("gets the current size if all annotations were removed and all pipes have one size", () => {
    expect(specForRecreation("service", [stripped("a", 4), stripped("b", 4, 9)])).toEqual(FOUR);
  });

  it("gets the size of the pipe that was resized last, and is suspended, if the sizes of the pipes differ", () => {
    const suspended = { ...FOUR, suspend: true };
    expect(specForRecreation("service", [stripped("a", 2, 9), stripped("b", 4)])).toEqual(suspended);
    expect(specForRecreation("service", [stripped("b", 4), aPipe("c")])).toEqual(suspended);
  });

  it("gets the newest size among the pipes with and without an annotation", () => {
    const rolled = (agoMs: number) =>
      rollingTo("a", sizeOfCores(4), {
        lastRollout: aRollout(sizeOfCores(4), { startedAtMs: NOW_MS - agoMs }),
      });
    expect(specForRecreation("service", [rolled(1), stripped("b", 2, 2)])).toEqual({
      ...FOUR,
      suspend: true,
    });
    expect(specForRecreation("service", [rolled(2), stripped("b", 2, 1)])).toEqual({
      replicaCpuMillicores: 2000,
      replicaMemoryGb: 8,
      suspend: true,
    });
  });

  describe("after rollouts that failed", () => {
    const ODD: Allotment = { requests: { cpu: "500m", memory: "1Gi" }, limits: { memory: "1Gi" } };

    /** A pipe that was rolled back from 8 cores, and has this size again. */
    function rolledBack(name: string, lastGoodSize: Allotment, agoMs = 0): PipeView {
      const startedAtMs = NOW_MS - agoMs;
      const lastRollout = aRollout(FAILED, { isRollback: true, lastGoodSize, startedAtMs });
      return aPipe(name, { size: isSize(lastGoodSize) ? lastGoodSize : undefined, lastRollout });
    }

    const running = (name: string, cores: number, agoMs: number) =>
      rollingTo(name, sizeOfCores(cores), {
        lastRollout: aRollout(sizeOfCores(cores), { startedAtMs: NOW_MS - agoMs }),
      });

    it("gets the size to which all pipes were rolled back", () => {
      const pipes = [rolledBack("a", sizeOfCores(4)), rolledBack("b", sizeOfCores(4), 9)];
      expect(specForRecreation("service", pipes)).toEqual(FOUR);
    });

    it("gets the size to which one pipe was rolled back and that the others never lost", () => {
      const pipes = [rolledBack("a", sizeOfCores(4)), running("b", 4, 99), running("c", 4, 98)];
      expect(specForRecreation("service", pipes)).toEqual(FOUR);
    });

    it("is suspended if another pipe keeps the size that failed", () => {
      const pipes = [rolledBack("a", sizeOfCores(4)), running("b", 8, 9)];
      expect(specForRecreation("service", pipes)).toEqual({ ...FOUR, suspend: true });
    });

    it("does not get the size that failed if a pipe has its own resources again", () => {
      expect(specForRecreation("service", [rolledBack("a", ODD)])).toEqual({ suspend: true });
      const pipes = [rolledBack("a", ODD), running("b", 4, 9)];
      expect(specForRecreation("service", pipes)).toEqual({ ...FOUR, suspend: true });
    });

    it("gets a size whose rollback was recorded as resources", () => {
      const inMebibytes = { requests: { cpu: "4", memory: "16384Mi" }, limits: { memory: "16384Mi" } };
      const pipe = { ...rolledBack("a", inMebibytes), size: sizeOfCores(4) };
      expect(specForRecreation("service", [pipe])).toEqual(FOUR);
    });

    it.each([sizeOfCores(1), ODD])(
      "does not get what a pipe had when it was adopted (%j)",
      (lastGoodSize) => {
        const adopted = rolledBack("new", lastGoodSize);
        const noted = aRollout(FAILED, { ...adopted.lastRollout, generation: 0, attempts: 0 });
        const pipe = { ...adopted, lastRollout: noted };
        const suspended = { ...FOUR, suspend: true };
        expect(specForRecreation("service", [pipe, running("b", 4, 9)])).toEqual(suspended);
        expect(specForRecreation("service", [pipe, rolledBack("b", sizeOfCores(4), 9)])).toEqual(suspended);
        // No other size is known than the one that the service had.
        const eight = { replicaCpuMillicores: 8000, replicaMemoryGb: 32, suspend: true };
        expect(specForRecreation("service", [pipe])).toEqual(eight);
      },
    );
  });

  it("is suspended without a size if the resources of the resized pipes do not form a valid size", () => {
    const sizes = [undefined, { cpuMillicores: 3000, memoryGib: 16 }];
    for (const size of sizes) {
      const pipe = aPipe("a", { size, resizedAtMs: NOW_MS });
      expect(specForRecreation("service", [pipe])).toEqual({ suspend: true });
    }
  });
});

type Annotation = "kept" | "removed" | "restored by another writer" | "of a deleted Deployment";

interface Sized {
  readonly cores: number;
  readonly startedAtMs: number;
  readonly annotation: Annotation;
  /** The controller rolled the pipe back to this size from a larger one. */
  readonly isRolledBack: boolean;
}

const FAILED = sizeOfCores(8);

/** A Deployment that the controller resized and whose annotation is in this state. */
function sizedDeployment({ cores, startedAtMs, annotation, isRolledBack }: Sized, index: number): PipeView {
  const name = `pipe-${index}`;
  const uid = `uid-${index}`;
  const size = sizeOfCores(cores);
  const rollout = isRolledBack
    ? aRollout(FAILED, { isRollback: true, lastGoodSize: size, startedAtMs })
    : aRollout(size, { startedAtMs });
  const written = formatLastRollout(rollout, annotation === "of a deleted Deployment" ? "another" : uid);
  const annotations = annotation === "removed" ? {} : { [LAST_ROLLOUT_ANNOTATION]: written };
  const made = pipeDeployment({ name, namespace: "pipes", serviceId: "service", cores, annotations });
  const time = new Date(startedAtMs).toISOString();
  return toPipeView({
    ...made,
    metadata: {
      ...made.metadata,
      uid,
      resourceVersion: "1",
      generation: 1,
      managedFields: [
        { manager: managerOf(annotation, "annotation"), time, fieldsV1: ANNOTATION_FIELD },
        { manager: managerOf(annotation, "size"), time, fieldsV1: SIZE_FIELDS },
      ],
    },
    status: { observedGeneration: 1, replicas: 1, updatedReplicas: 1, availableReplicas: 1 },
  });
}

function managerOf(annotation: Annotation, field: "annotation" | "size"): string {
  if (annotation === "of a deleted Deployment") return "restorer";
  return annotation === "kept" || field === "size" ? CONTROLLER_FIELD_MANAGER : "another writer";
}

const ANNOTATION_FIELD: FieldsV1 = {
  "f:metadata": { "f:annotations": { [`f:${LAST_ROLLOUT_ANNOTATION}`]: {} } },
};
const SIZE_FIELDS: FieldsV1 = {
  "f:spec": {
    "f:template": {
      "f:spec": {
        "f:containers": { 'k:{"name":"pipe"}': { "f:resources": { "f:requests": { "f:cpu": {} } } } },
      },
    },
  },
};

function recreate(pipes: readonly PipeView[]) {
  const snapshot = aSnapshot(pipes, { scaling: undefined });
  const [create] = decide(snapshot, DECIDE_OPTIONS).actions;
  if (create?.type !== "create-pipe-scaling") throw new Error("the PipeScaling is not re-created");
  const scaling = { ...aScaling(undefined), spec: create.spec satisfies PipeScalingSpec };
  const { actions } = decide({ ...snapshot, scaling }, DECIDE_OPTIONS);
  return { spec: create.spec, writes: actions.map(({ type }) => type) };
}

it("a re-created PipeScaling resizes no pipe and has no failed size, regardless of the annotations of the pipes", () => {
  const sized = fc.record({
    cores: fc.constantFrom(1, 2, 4),
    startedAtMs: fc.integer({ min: NOW_MS - 5000, max: NOW_MS }),
    annotation: fc.constantFrom<Annotation>(
      "kept",
      "removed",
      "restored by another writer",
      "of a deleted Deployment",
    ),
    isRolledBack: fc.boolean(),
  });
  const services = fc.tuple(
    fc.array(sized, { minLength: 1, maxLength: 5 }),
    // Pipes that the controller has never resized.
    fc.array(fc.constantFrom(1, 2, 4), { maxLength: 2 }),
  );
  fc.assert(
    fc.property(services, ([resized, others]) => {
      const pipes = [
        ...resized.map(sizedDeployment),
        ...others.map((cores, index) => aPipe(`new-${index}`, { size: sizeOfCores(cores) })),
      ];
      const { spec, writes } = recreate(pipes);
      expect(writes).not.toContain("resize");
      expect(writes).not.toContain("roll-back");
      expect(spec.replicaCpuMillicores).not.toBe(FAILED.cpuMillicores);
    }),
  );
});
