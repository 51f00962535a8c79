import { describe, expect, it } from "vitest";
import type { Operation } from "../../../src/api/openapi/operation.ts";
import { OPERATIONS } from "../../../src/api/resources/operations.ts";
import { LIST_OF_ORGANIZATIONS, tenantOperations, unusedRows } from "../../api/tenancy.ts";

const operation: Operation = {
  method: "GET",
  path: "/v1/organizations/{organizationId}/things",
  id: "listThings",
  tag: "Service",
  summary: "List things",
  description: "Things.",
  refusals: {},
};

describe("the rows of the tenancy test", () => {
  it.each(OPERATIONS.map(({ id }) => id))("include %s", (id) => {
    const rows = tenantOperations(OPERATIONS).map((row) => row.id);
    expect([LIST_OF_ORGANIZATIONS, ...rows]).toContain(id);
  });

  it("include a new read automatically", () => {
    expect(tenantOperations([operation])).toMatchObject([{ id: "listThings", isDeep: false }]);
  });

  it.each<[string, Partial<Operation>, string]>([
    ["a write without a row", { method: "PATCH" }, "listThings has no row in WRITES"],
    ["a read with the row of a write", { id: "removeMember" }, "removeMember is a read"],
    [
      "an unknown path parameter",
      { path: "/v1/organizations/{organizationId}/things/{thingId}" },
      "listThings has the path parameter thingId",
    ],
    [
      "a path without an organization",
      { path: "/v1/things" },
      "the path of listThings names no organization",
    ],
  ])("cause an error that names the operation for %s", (_, changes, message) => {
    expect(() => tenantOperations([{ ...operation, ...changes }])).toThrow(message);
  });

  it("all belong to existing operations", () => {
    expect(unusedRows(OPERATIONS)).toEqual([]);
  });
});
