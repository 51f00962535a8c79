import { describe, expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import type { Snapshot } from "../../../../src/controller/observe/observe.ts";
import { actionsFor, failuresIn, summaries } from "../../../support/fixtures/decisions.ts";
import { aPipe, aSnapshot, DECIDE_OPTIONS } from "../../../support/fixtures/snapshot.ts";
import { aStatefulPipe } from "../../../support/fixtures/stateful-set.ts";

describe("a pipe with a CPU limit", () => {
  it("is reported with a fix if the limit is below the size", () => {
    expect(
      failuresIn(decide(aSnapshot([aPipe("a", { cpuLimitMillicores: 2000 })]), DECIDE_OPTIONS)),
    ).toMatchObject([
      {
        reason: "CpuLimitTooLow",
        message: expect.stringContaining("remove limits.cpu, or set it to at least"),
      },
    ]);
  });

  it("is resized if the limit allows the size", () => {
    expect(actionsFor(aSnapshot([aPipe("a", { cpuLimitMillicores: 6000 })]))).toEqual(["a 4000m/16Gi"]);
  });
});

describe.each([1, 4])("a StatefulSet with %i cores that the controller may not watch any more", (cores) => {
  const message = 'statefulsets.apps is forbidden: User "controller" cannot watch resource "statefulsets"';
  const decisionWith = (problem: string | undefined) => {
    const pipes = [aStatefulPipe({ options: { name: "set", cores } }), aPipe("deployment")];
    return decide(aSnapshot(pipes, { statefulSetsProblem: problem }), DECIDE_OPTIONS);
  };

  it("is neither ready nor resized, and a Deployment is", () => {
    const decision = decisionWith(message);
    expect(failuresIn(decision)).toMatchObject([{ reason: "Forbidden", message }]);
    expect(summaries(decision.actions)).toEqual(["deployment 4000m/16Gi"]);
  });

  it("is not reported while the controller may watch it", () => {
    expect(failuresIn(decisionWith(undefined))).toEqual([]);
  });
});

describe("a StatefulSet with a long name", () => {
  const decisionOf = (length: number, cores = 1, strategy: Snapshot["strategy"] = "InPlaceOrRollout") => {
    const pipe = aStatefulPipe({ options: { name: "a".repeat(length), cores } });
    return decide(aSnapshot([pipe], { strategy }), DECIDE_OPTIONS);
  };

  it.each(["InPlaceOrRollout", "InPlace", "Rollout"] as const)(
    "is reported before anything stops if its pods may not be creatable with another template: %s",
    (strategy) => {
      const decision = decisionOf(53, 1, strategy);
      const message = expect.stringContaining("with a name of at most 52 characters");
      expect(failuresIn(decision)).toMatchObject([{ reason: "Refused", message }]);
      expect(decision.actions).toEqual([]);
    },
  );

  it("is left alone if it has the size, or if the longest hash fits", () => {
    expect(failuresIn(decisionOf(53, 4))).toEqual([]);
    expect(failuresIn(decisionOf(52))).toEqual([]);
    expect(decisionOf(52).actions).not.toEqual([]);
  });
});
