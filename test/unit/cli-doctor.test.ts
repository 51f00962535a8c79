import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { type Definition, examineDefinition } from "../../src/cli/doctor/definition.ts";
import { RIGHTS, type Right } from "../../src/cli/doctor/rights.ts";
import { examineServer, ofClock } from "../../src/cli/doctor/server.ts";
import { VirtualClock } from "../gen/clock.ts";
import { type Component, shippedAccount } from "../gen/shipped-account.ts";

const CHART = new URL("../../deploy/chart/pipe-scaling-operator/Chart.yaml", import.meta.url);

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

function asked(rights: readonly Right[]): string[] {
  return rights
    .flatMap(({ group, resource, subresource, name = "", verbs }) => {
      const full = subresource === undefined ? resource : `${resource}/${subresource}`;
      return verbs.map((verb) => [group, full, name, verb].join(" "));
    })
    .sort();
}

test.each<Component>(["api", "controller"])(
  "the rights that are asked about are those that the %s is shipped with",
  (component) => {
    expect(asked(RIGHTS[component].records)).toEqual(shipped(component, "Role"));
    const { pipes, cluster } = RIGHTS[component];
    expect(asked([...pipes, ...cluster])).toEqual(shipped(component, "ClusterRole"));
  },
);

describe("the API server", () => {
  async function examined(minor: string, tookMs: number) {
    const clock = new VirtualClock();
    const client = {
      server: "https://cluster.example",
      async json() {
        await clock.advance(tookMs);
        return JSON.parse(JSON.stringify({ major: "1", minor, gitVersion: `v1.${minor}.0` }));
      },
    };
    return await examineServer(client, clock, new AbortController().signal);
  }

  test("of a supported version that is quick is well, whatever its vendor appends", async () => {
    expect(await examined("31+", 3)).toEqual([
      {
        severity: "ok",
        check: "server",
        message: "https://cluster.example is reached; it is Kubernetes v1.31+.0.",
      },
      { severity: "ok", check: "server", message: "It answers in 3 ms." },
    ]);
  });

  test("is supported from the version on that the chart asks for", async () => {
    const least = /^kubeVersion: ">=1\.(\d+)\.0-0"$/m.exec(readFileSync(CHART, "utf8"))?.[1];
    expect(await examined(String(least), 3)).toMatchObject([{ severity: "ok" }, { severity: "ok" }]);
    expect(await examined(String(Number(least) - 1), 3)).toMatchObject([
      { severity: "error", message: expect.stringContaining(`1.${least} is the least`) },
      { severity: "ok" },
    ]);
  });

  test("that is slow is not well", async () => {
    expect(await examined("36", 900)).toMatchObject([
      { severity: "ok" },
      { severity: "warning", message: expect.stringMatching(/^It takes 900 ms/) },
    ]);
  });
});

describe("the clocks", () => {
  const told = (aheadMs: number | undefined) =>
    ofClock({ user: undefined, aheadMs }).map(({ severity, message }) => `${severity} ${message}`);

  test("agree, or it is told which is behind", () => {
    expect(told(-4999)).toEqual(["ok The clocks of this machine and of the API server agree."]);
    expect(told(90_000)[0]).toMatch(
      /^warning The clock of this machine is 90 s behind that of the API server/,
    );
    expect(told(-7_200_000)[0]).toMatch(/^warning The clock of this machine is 2 h ahead of that/);
    expect(told(undefined)[0]).toMatch(/^note Not looked at/);
  });
});

test("a definition that the API server does not take is named with why", () => {
  const definition: Definition = {
    metadata: { name: "pipescalings.pipes.clouddb.dev", uid: "u", resourceVersion: "1" },
    spec: { versions: [] },
    status: { conditions: [{ type: "Established", status: "False", message: "the name is taken" }] },
  };
  expect(examineDefinition(definition)).toEqual([
    expect.objectContaining({
      severity: "error",
      message: expect.stringContaining("is not established: the name is taken."),
    }),
  ]);
});
