import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { checkPolicies } from "../../../../src/cli/doctor/policies.ts";
import type { ManagedFields } from "../../../../src/kube/objects.ts";
import { clusterWith } from "./fake-reads.ts";

const MANIFESTS = new URL("../../../../deploy/manifests/install.yaml", import.meta.url);
const GROUP = "/apis/admissionregistration.k8s.io/v1";
const POLICY = "ValidatingAdmissionPolicy";
const BINDING = "ValidatingAdmissionPolicyBinding";
const NAME = "pipe-scaling-operator-controller.pipe-scaling-system";

interface Shipped {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly managedFields?: readonly ManagedFields[] };
  readonly spec: Readonly<Record<string, unknown>>;
}

const SHIPPED = parseAllDocuments(readFileSync(MANIFESTS, "utf8")).flatMap(
  (each): Shipped[] => each.toJS() ?? [],
);

/** The results after `change` of the shipped policies and bindings; `undefined` deletes one. */
async function results(
  change: (object: Shipped) => Shipped | undefined = (object) => object,
  annotations: Readonly<Record<string, string>> | undefined = undefined,
) {
  const objects = SHIPPED.filter(({ kind }) => [POLICY, BINDING].includes(kind)).flatMap(
    (each) => change(each) ?? [],
  );
  const items = (kind: string) => ({ metadata: {}, items: objects.filter((each) => each.kind === kind) });
  const cluster = clusterWith(
    {
      "/apis/apps/v1/deployments": {
        metadata: {},
        items: SHIPPED.filter(({ kind }) => kind === "Deployment").map((each) => ({
          ...each,
          metadata: { ...each.metadata, ...(annotations && { annotations }) },
        })),
      },
      [`${GROUP}/validatingadmissionpolicies`]: items(POLICY),
      [`${GROUP}/validatingadmissionpolicybindings`]: items(BINDING),
      "/apis/authorization.k8s.io/v1/subjectaccessreviews": { status: { allowed: false } },
    },
    { namespace: "pipe-scaling-records" },
  );
  const all = await checkPolicies(cluster);
  for (const { severity, remedy } of all) if (severity !== "ok") expect(remedy).toMatch(/helm upgrade/);
  return all.map(({ severity, message }) => `${severity}: ${message}`);
}

/** Replaces one object. */
function only(kind: string, change: (object: Shipped) => Shipped | undefined) {
  return (each: Shipped) => (each.kind === kind && each.metadata.name === NAME ? change(each) : each);
}

function withSpec(spec: Readonly<Record<string, unknown>>) {
  return (object: Shipped): Shipped => ({ ...object, spec: { ...object.spec, ...spec } });
}

/** Adds fields to the constraints of a policy, and to each of its rules. */
function withConstraints(constraint: object, rule: object) {
  return ({ spec, ...others }: Shipped): Shipped => {
    const { matchConstraints } = spec;
    if (!matchConstraints) return { ...others, spec };
    const { resourceRules } = matchConstraints as { resourceRules: object[] };
    const rules = resourceRules.map((each) => ({ ...each, ...rule }));
    return { ...others, spec: { ...spec, matchConstraints: { resourceRules: rules, ...constraint } } };
  };
}

describe("the policies check of doctor", () => {
  it("accepts the shipped policies and knows the name of each", async () => {
    const count = SHIPPED.filter(({ kind }) => kind === POLICY).length;
    expect(count).toBeGreaterThan(0);
    expect(await results()).toEqual([`ok: The admission policies are in force: ${count}.`]);
  });

  it.each(SHIPPED.filter(({ kind }) => kind === POLICY || kind === BINDING))(
    "reports that the $kind $metadata.name does not exist",
    async (deleted) => {
      expect(await results((each) => (each === deleted ? undefined : each))).toEqual([
        expect.stringMatching(`^error: The ${deleted.kind} ${deleted.metadata.name} .*does not exist`),
      ]);
    },
  );

  it("reports each of them if all are deleted, and adds a note if the chart omitted them", async () => {
    const all = await results(() => undefined);
    expect(all.length).toBeGreaterThan(10);
    expect(all.filter((each) => !/^error: The Validating.* does not exist/.test(each))).toEqual([]);
    expect(await results(() => undefined, { "pipes.clouddb.dev/admission-policies": "false" })).toEqual([
      expect.stringMatching(/^note: The admission policies of the chart are not installed/),
    ]);
  });

  it.each([
    ["resizes in place", /-(resize|replicasets|replicasets-delete|pods)\./, 8],
    ["StatefulSets", /-(statefulsets|pods-delete|pods)\./, 9],
    ["both", /-(resize|replicasets|replicasets-delete|statefulsets|pods-delete|pods)\./, 6],
  ])("does not expect the policies of %s without the permission", async (_, names, count) => {
    expect(await results((each) => (names.test(each.metadata.name) ? undefined : each))).toEqual([
      `ok: The admission policies are in force: ${count}.`,
    ]);
  });

  it.each([
    { validationActions: ["Warn"] },
    { validationActions: ["Deny", "Audit"] },
    { policyName: "other" },
    { matchResources: {} },
    { paramRef: {} },
  ])("reports a binding with %o", async (spec) => {
    expect(await results(only(BINDING, withSpec(spec)))).toEqual([changed(BINDING)]);
  });

  it.each([
    { failurePolicy: "Ignore" },
    { validations: [] },
    { validations: [{ expression: "true" }] },
    { matchConditions: [{ name: "is-the-controller", expression: "false" }] },
    { matchConstraints: { resourceRules: [] } },
    { matchConstraints: { namespaceSelector: { matchLabels: { a: "b" } } } },
    { variables: [] },
  ])("reports a policy with %o", async (spec) => {
    expect(await results(only(POLICY, withSpec(spec)))).toEqual([changed(POLICY)]);
  });

  it.each([
    [{ matchPolicy: "Exact" }, {}],
    [{}, { scope: "Cluster" }],
  ])("reports a policy with %o in its constraints and %o in their rules", async (constraint, rule) => {
    expect(await results(only(POLICY, withConstraints(constraint, rule)))).toEqual([changed(POLICY)]);
  });

  it("names the field managers of a changed spec", async () => {
    const managedFields = ["helm", "kubectl-edit"].map((manager) => ({
      manager,
      fieldsV1: { "f:spec": {} },
    }));
    const edited = only(POLICY, (object) => ({
      ...withSpec({ failurePolicy: "Ignore" })(object),
      metadata: { ...object.metadata, managedFields },
    }));
    expect(await results(edited)).toEqual([expect.stringMatching(/: helm, kubectl-edit\.$/)]);
  });

  it("does not take the values that the API server adds for changes", async () => {
    const defaults = { matchPolicy: "Equivalent", namespaceSelector: {}, objectSelector: {} };
    const withDefaults = withConstraints(defaults, { scope: "*" });
    expect(await results(withDefaults)).toEqual([expect.stringMatching(/^ok: /)]);
  });
});

function changed(kind: string) {
  return expect.stringMatching(`^error: The ${kind} ${NAME} differs from the chart, so `);
}
