import { expect, it } from "vitest";
import { formatLabelSelector } from "../../../src/kube/label-selector.ts";

it("a label selector becomes the query of a list", () => {
  const selector = {
    matchLabels: { app: "pipe", tier: "db" },
    matchExpressions: [
      { key: "zone", operator: "In", values: ["a", "b"] },
      { key: "phase", operator: "NotIn", values: ["old"] },
      { key: "owner", operator: "Exists" },
      { key: "canary", operator: "DoesNotExist" },
    ],
  } as const;
  expect(formatLabelSelector(selector)).toBe(
    "app=pipe,tier=db,zone in (a,b),phase notin (old),owner,!canary",
  );
});

it("an empty label selector selects all", () => {
  expect(formatLabelSelector({})).toBe("");
});
