import { describe, expect, it } from "vitest";
import { stopsOldPodsFirst } from "../../../src/kube/rollout-strategy.ts";

describe("a rollout", () => {
  it.each([
    ["stops its old pods first with the strategy Recreate", 1, { type: "Recreate" }, true],
    [
      "stops its old pods first without a surge",
      1,
      { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
      true,
    ],
    [
      "stops its old pods first with a surge of 0 percent",
      3,
      { rollingUpdate: { maxSurge: "0%", maxUnavailable: 1 } },
      true,
    ],
    [
      "stops its old pods first if all pods may be unavailable",
      2,
      { rollingUpdate: { maxSurge: 1, maxUnavailable: "100%" } },
      true,
    ],
    [
      "stops its old pods first if as many pods as exist may be unavailable",
      2,
      { rollingUpdate: { maxSurge: 1, maxUnavailable: 2 } },
      true,
    ],
    ["does not stop its old pods first by default", 1, { type: "RollingUpdate" }, false],
    [
      "does not stop its old pods first if one of them must stay available",
      4,
      { rollingUpdate: { maxSurge: "1%", maxUnavailable: 3 } },
      false,
    ],
    [
      "does not stop its old pods first if it has no replicas",
      0,
      { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
      false,
    ],
  ])("%s", (_, replicas, strategy, expected) =>
    expect(stopsOldPodsFirst({ replicas, strategy, template: { spec: { containers: [] } } })).toBe(expected),
  );
});
