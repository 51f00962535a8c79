import { describe, expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import type { AutoscalerView } from "../../../../src/controller/observe/autoscaler-view.ts";
import type { Snapshot } from "../../../../src/controller/observe/observe.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { aPipe, aSnapshot, DECIDE_OPTIONS, rollingTo } from "../../../support/fixtures/snapshot.ts";

/** The remark on a pipe of a service whose desired size is four cores. */
function remarkOn(pipe: PipeView, changes: Partial<Snapshot> = {}): string | undefined {
  return decide(aSnapshot([pipe], changes), DECIDE_OPTIONS).sizing?.assessments[0]?.remark;
}

describe("the remark on a CPU limit", () => {
  it("says that the container becomes Guaranteed, but not its pods, if the limit equals the desired size", () => {
    expect(remarkOn(aPipe("a", { cpuLimitMillicores: 4000 }))).toBe(
      "The CPU limit of a equals the size, so its container with this size is Guaranteed and not Burstable; the QoS class of a pod depends on all of its containers.",
    );
  });

  it("says that the limit follows the size during a rescale of a Guaranteed pipe, and nothing after it", () => {
    const text = "The CPU limit of a follows the size, so its container stays Guaranteed.";
    expect(remarkOn(aPipe("a", { cpuLimitFollows: true }))).toBe(text);
    expect(remarkOn(rollingTo("a", sizeOfCores(4), { cpuLimitFollows: true }))).toBe(text);
    expect(remarkOn(aPipe("a", { cpuLimitFollows: true, size: sizeOfCores(4) }))).toBeUndefined();
  });

  it("comes after that on an autoscaler", () => {
    const autoscaler: AutoscalerView = {
      kind: "HorizontalPodAutoscaler",
      metadata: { name: "hpa", namespace: "pipes", uid: "uid-hpa", resourceVersion: "1", generation: 1 },
      pipeName: "a",
      policies: new Map(),
    };
    const remark = remarkOn(aPipe("a", { cpuLimitMillicores: 4000 }), {
      autoscalers: new Map([["a", [autoscaler]]]),
    });
    expect(remark).toMatch(/^The HorizontalPodAutoscaler "hpa" .* The CPU limit of a equals the size/);
  });

  it("is absent if there is no limit, or a limit above or below the size", () => {
    for (const cpuLimitMillicores of [undefined, 3999, 4001])
      expect(remarkOn(aPipe("a", { cpuLimitMillicores }))).toBeUndefined();
  });
});
