import { describe, expect, it } from "vitest";
import { ROLLING, strategyFlags } from "./strategies.ts";
import { rendered, valuesFile } from "./tools.ts";

describe("the update strategy of a Deployment of the chart", () => {
  it.each<[string, object]>([
    ["{}", ROLLING],
    ["null", ROLLING],
    ['{"type":"RollingUpdate"}', ROLLING],
    [
      '{"rollingUpdate":{"maxUnavailable":0}}',
      { ...ROLLING, rollingUpdate: { maxSurge: "25%", maxUnavailable: 0 } },
    ],
    [
      '{"type":"RollingUpdate","rollingUpdate":{"maxSurge":0,"maxUnavailable":1}}',
      { ...ROLLING, rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
    ],
    [
      '{"rollingUpdate":{"maxSurge":"50%"}}',
      { ...ROLLING, rollingUpdate: { maxSurge: "50%", maxUnavailable: "25%" } },
    ],
    ['{"type":"RollingUpdate","rollingUpdate":null}', ROLLING],
    ['{"type":"Recreate"}', { type: "Recreate" }],
  ])("with the values %s has all fields that the API server would set", async (strategy, expected) => {
    const deployments = (
      await rendered("--values", valuesFile("minimal"), ...strategyFlags(strategy))
    ).filter(({ kind }) => kind === "Deployment");
    expect(deployments).toHaveLength(2);
    for (const deployment of deployments) expect(Object(deployment).spec.strategy).toEqual(expected);
  });
});
