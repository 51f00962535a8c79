import { describe, expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import { actionsFor, failuresIn } from "../../../support/fixtures/decisions.ts";
import { aPipe, aSnapshot, DECIDE_OPTIONS } from "../../../support/fixtures/snapshot.ts";

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
