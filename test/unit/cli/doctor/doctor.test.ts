import { readFileSync } from "node:fs";
import type { V1CustomResourceDefinition } from "@kubernetes/client-node";
import { describe, expect, test } from "vitest";
import { checkCrd } from "../../../../src/cli/doctor/crd.ts";
import { PERMISSIONS, type Permission } from "../../../../src/cli/doctor/permissions.ts";
import { checkServer } from "../../../../src/cli/doctor/server.ts";
import { crdManifest } from "../../../../src/crd/manifest.ts";
import { type Component, shippedAccount } from "../../../support/fixtures/shipped-account.ts";
import { clusterWith, versionOf } from "./fake-reads.ts";

const CHART = new URL("../../../../deploy/chart/pipe-scaling-operator/Chart.yaml", import.meta.url);

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

/** Every permission that the chart grants, as one line of text. */
function shipped(component: Component, kind: string): string[] {
  return shippedAccount(component, "anywhere")
    .filter(
      (object): object is { kind: string; rules: readonly Rule[] } =>
        "kind" in object && object.kind === kind,
    )
    .flatMap(({ rules }) => rules)
    .flatMap(({ apiGroups, resources, resourceNames = [""], verbs }) =>
      apiGroups.flatMap((group) =>
        resources.flatMap((resource) =>
          resourceNames.flatMap((name) => verbs.map((verb) => [group, resource, name, verb].join(" "))),
        ),
      ),
    )
    .sort();
}

function checked(permissions: readonly Permission[]): string[] {
  return permissions
    .flatMap(({ group, resource, name = "", verbs }) =>
      verbs.map((verb) => [group, resource, name, verb].join(" ")),
    )
    .sort();
}

test.each<Component>(["api", "controller"])(
  "doctor checks the permissions that the chart grants to the %s",
  (component) => {
    const isOfRecords = ({ scope }: Permission) => scope === "records";
    const permissions = PERMISSIONS[component];
    const message =
      "src/cli/doctor/permissions.ts differs from deploy/chart/pipe-scaling-operator/templates/_rules.tpl: change one of them, then run npm run generate";
    expect(checked(permissions.filter(isOfRecords)), message).toEqual(shipped(component, "Role"));
    expect(checked(permissions.filter((each) => !isOfRecords(each))), message).toEqual(
      shipped(component, "ClusterRole"),
    );
  },
);

describe("the API server", () => {
  async function check(minor: string) {
    const [result] = await checkServer(clusterWith({ "/version": versionOf(minor) }));
    return result;
  }

  test("is supported even if its version has a vendor suffix", async () => {
    expect(await check("31+")).toEqual({
      severity: "ok",
      message: "https://cluster.example is reachable and runs Kubernetes v1.31+.0.",
    });
  });

  test("is supported from the version that the chart requires", async () => {
    const least = /^kubeVersion: ">=1\.(\d+)\.0-0"$/m.exec(readFileSync(CHART, "utf8"))?.[1];
    expect(await check(String(least))).toMatchObject({ severity: "ok" });
    expect(await check(String(Number(least) - 1))).toMatchObject({
      severity: "error",
      message: expect.stringContaining(`the CRD needs 1.${least} or later`),
    });
  });
});

describe("the CRD check of doctor", () => {
  const name = "pipescalings.pipes.clouddb.dev";
  const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${name}`;
  const { spec }: V1CustomResourceDefinition = JSON.parse(JSON.stringify(crdManifest()));
  const ESTABLISHED = { type: "Established", status: "True" };

  async function check(changed: object, condition: object = ESTABLISHED) {
    const metadata = { name, uid: "u", resourceVersion: "1" };
    const [result] = await checkCrd(
      clusterWith({ [path]: { metadata, spec: changed, status: { conditions: [condition] } } }),
    );
    return `${result?.severity}: ${result?.message}`;
  }

  test("reports a CRD that the API server does not accept", async () => {
    const refused = { type: "Established", status: "False", message: "the name is taken" };
    expect(await check({ versions: [] }, refused)).toMatch(
      /^error: .* is not established: nothing is resized\.$/,
    );
  });

  test("accepts the CRD of this release, with the defaults of the API server", async () => {
    expect(await check(spec)).toMatch(/^ok: .* is that of this release\.$/);
    expect(await check({ ...spec, conversion: { strategy: "None" } })).toMatch(/^ok: /);
  });

  test("reports a CRD with the same schema whose status is an ordinary field, or that a webhook converts", async () => {
    const withoutStatus = spec.versions.map(({ subresources: _, ...version }) => version);
    const withEmpty = spec.versions.map((version) => ({ ...version, subresources: {} }));
    const conversion = { strategy: "Webhook", webhook: { conversionReviewVersions: ["v1"] } };
    for (const changed of [{ versions: withoutStatus }, { versions: withEmpty }, { conversion }])
      expect(await check({ ...spec, ...changed })).toMatch(/^warning: .* differs from that of this release/);
  });
});
