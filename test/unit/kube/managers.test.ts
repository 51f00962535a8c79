import { describe, expect, it } from "vitest";
import { isManagedBy, managersOf } from "../../../src/kube/managers.ts";

const WAYS = [
  ["f:spec", "f:replicas"],
  ["f:spec", "f:paused"],
];

describe("the managers of a field", () => {
  it("are the managers that own it, without duplicates", () => {
    const managed = [
      { manager: "helm", fieldsV1: { "f:spec": { "f:replicas": {}, "f:paused": {} } } },
      { manager: "kubectl", fieldsV1: { "f:spec": { "f:template": {} } } },
      { manager: "somebody", fieldsV1: { "f:spec": { "f:paused": {} } } },
      { manager: "helm", fieldsV1: { "f:spec": { "f:paused": {} } } },
    ];
    expect(managersOf(managed, WAYS)).toEqual(["helm", "somebody"]);
  });

  it("are empty if the object has no managedFields", () => {
    expect(managersOf(undefined, WAYS)).toEqual([]);
    expect(managersOf([{ manager: "status-only" }], WAYS)).toEqual([]);
    expect(isManagedBy("status-only", [{ manager: "status-only" }], WAYS)).toBe(false);
    expect(isManagedBy("helm", undefined, WAYS)).toBe(false);
  });

  it("include a manager that owns one of the fields, and no manager that owns only others", () => {
    const managed = [
      { manager: "helm", fieldsV1: { "f:spec": { "f:template": {} } } },
      { manager: "kubectl", fieldsV1: { "f:spec": { "f:template": {} } } },
      { manager: "helm", fieldsV1: { "f:spec": { "f:paused": {} } } },
    ];
    expect(["helm", "kubectl", "argocd"].map((manager) => isManagedBy(manager, managed, WAYS))).toEqual([
      true,
      false,
      false,
    ]);
  });
});
