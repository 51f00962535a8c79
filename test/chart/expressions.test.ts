import { expect, it } from "vitest";
import { rendered, valuesFile } from "./tools.ts";

/** Functions of CEL that the oldest supported version of Kubernetes has (docs/reference/versions.md). */
const FUNCTIONS = [
  ...["all", "exists", "filter", "has", "map", "size", "dyn", "string"],
  ...["contains", "matches", "split", "startsWith", "substring"],
  ...["of", "orValue", "hasValue", "value"],
  ...["quantity", "compareTo"],
];

/** Returns the functions that the expressions in a value call. */
function calledIn(value: unknown, key = ""): readonly string[] {
  if (typeof value === "object" && value !== null)
    return Object.entries(value).flatMap(([name, each]) => calledIn(each, name));
  if (typeof value !== "string" || !["expression", "rule"].includes(key)) return [];
  const withoutTexts = value.replaceAll(/'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"/gs, "''");
  // `in (` is the operator.
  return [...withoutTexts.matchAll(/\b(?!in\b)(\w+)\s*\(/g)].map(([, name = ""]) => name);
}

it.each(["minimal", "everything", "all-namespaces"] as const)(
  "rules and policies with the values %s need no newer Kubernetes than the chart",
  async (set) => {
    const objects = await rendered("--values", valuesFile(set), "--include-crds");
    const called = objects
      .filter(({ kind }) => kind === "ValidatingAdmissionPolicy" || kind === "CustomResourceDefinition")
      .flatMap((each) => calledIn(each));
    expect(called.length).toBeGreaterThan(0);
    expect([...new Set(called)].filter((name) => !FUNCTIONS.includes(name))).toEqual([]);
  },
);

it("each policy denies the requests that it cannot judge", async () => {
  const objects = await rendered("--values", valuesFile("everything"));
  const policies = objects.filter(({ kind }) => kind === "ValidatingAdmissionPolicy");
  expect(policies.length).toBeGreaterThan(10);
  for (const policy of policies) expect(policy).toMatchObject({ spec: { failurePolicy: "Fail" } });
});
