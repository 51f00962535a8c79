import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { type Crd, checkCrd } from "../../../../src/cli/doctor/crd.ts";
import { PERMISSIONS, type Permission } from "../../../../src/cli/doctor/permissions.ts";
import { checkClock, checkPodResizes, checkServer } from "../../../../src/cli/doctor/server.ts";
import { type Component, shippedAccount } from "../../../support/fixtures/shipped-account.ts";

const CHART = new URL("../../../../deploy/chart/pipe-scaling-operator/Chart.yaml", import.meta.url);

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

/** Each thing that is allowed, in one line. */
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

function asked(permissions: readonly Permission[]): string[] {
  return permissions
    .flatMap(({ group, resource, name = "", verbs }) =>
      verbs.map((verb) => [group, resource, name, verb].join(" ")),
    )
    .sort();
}

test.each<Component>(["api", "controller"])(
  "doctor checks the permissions that the chart grants to the %s",
  (component) => {
    expect(asked(PERMISSIONS[component].records)).toEqual(shipped(component, "Role"));
    const { pipes, cluster, inPlace } = PERMISSIONS[component];
    expect(asked([...pipes, ...cluster, ...inPlace])).toEqual(shipped(component, "ClusterRole"));
  },
);

describe("the API server, of resizes in place", () => {
  async function check(minor: string, ...names: string[]) {
    const client = {
      async json({ path }: { readonly path: string }) {
        const version = { major: "1", minor, gitVersion: `v1.${minor}.0` };
        const resources = names.map((name) => ({ name }));
        return JSON.parse(JSON.stringify(path === "/version" ? version : { resources }));
      },
    };
    return await checkPodResizes(client, new AbortController().signal);
  }

  test("can make them if it serves pods/resize and is new enough", async () => {
    expect(await check("35", "pods", "pods/resize")).toEqual([]);
    expect(await check("34", "pods", "pods/resize")).toMatchObject([
      { severity: "warning", message: expect.stringContaining("that needs 1.35 or later") },
    ]);
    expect(await check("36", "pods", "pods/status")).toMatchObject([
      { severity: "warning", message: expect.stringContaining("does not serve pods/resize") },
    ]);
  });
});

describe("the API server", () => {
  async function check(minor: string) {
    const client = {
      server: "https://cluster.example",
      async json() {
        return JSON.parse(JSON.stringify({ major: "1", minor, gitVersion: `v1.${minor}.0` }));
      },
    };
    return await checkServer(client, new AbortController().signal);
  }

  test("is supported if its version is, whatever its vendor appends", async () => {
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

describe("the clocks", () => {
  const told = (offsetMs: number | undefined) => {
    const { severity, message } = checkClock(offsetMs);
    return `${severity} ${message}`;
  };

  test("agree, or the result names the one that is behind", () => {
    expect(told(-4999)).toBe("ok The clocks of this machine and of the API server agree.");
    expect(told(90_000)).toMatch(/^warning The clock of this machine is 90 s behind that of the API server/);
    expect(told(-7_200_000)).toMatch(/^warning The clock of this machine is 2 h ahead of that/);
    expect(told(undefined)).toMatch(/^note Not checked/);
  });
});

test("reports a CRD that the API server does not accept, with the reason", () => {
  const crd: Crd = {
    metadata: { name: "pipescalings.pipes.clouddb.dev", uid: "u", resourceVersion: "1" },
    spec: { versions: [] },
    status: { conditions: [{ type: "Established", status: "False", message: "the name is taken" }] },
  };
  expect(checkCrd(crd)).toMatchObject({
    severity: "error",
    message: expect.stringContaining("is not established: the name is taken."),
  });
});
