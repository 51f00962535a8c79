import { randomUUID } from "node:crypto";
import { apply, kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { serviceAccountKubeconfig } from "@pipe-scaling/local-cluster/service-account";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { CONFIG_MAPS } from "../../src/kube/paths.ts";
import { serviceRecord } from "../support/fixtures/records.ts";
import { MAIN, runProgram } from "../support/terminal/program.ts";
import { startInPty, widest } from "../support/terminal/pty.ts";
import { TestEnvironment } from "../support/test-environment.ts";
import { createHeldPipe, release, waitForPipeScalings } from "./held-pipes.ts";

let environment: TestEnvironment;
/** A second service, which has no pipes. */
let empty: string;
beforeAll(async () => {
  environment = await TestEnvironment.create("scale");
  await waitForPipeScalings(environment);
  empty = await addService("customers");
  await environment.createPipe({ name: "pipe-a", cores: 2 });
  await environment.createPipe({ name: "pipe-b", cores: 2, replicas: 2 });
  await environment.startController();
  await environment.waitForCondition("Ready", "True");
  await environment.requestSize(null);
  await environment.waitForCondition("Ready", "True");
});
afterAll(() => environment.end());

async function addService(name: string): Promise<string> {
  const record = serviceRecord({
    name,
    organizationId: environment.organizationId,
    namespace: environment.pipes,
  });
  await environment.create(CONFIG_MAPS, environment.records, record);
  return record.metadata.name.slice("service-".length);
}

function words(...flags: string[]): string[] {
  return [
    "status",
    "--kubeconfig",
    environment.cluster.kubeconfig,
    "--namespace",
    environment.records,
    ...flags,
  ];
}

/** The cells of each line of a table. */
function cells(table: string): string[][] {
  return table
    .trimEnd()
    .split("\n")
    .map((line) => line.split(/ {2,}/));
}

describe("status of all services", () => {
  it("is a table with the time since the last change", async () => {
    const { code, out, err } = await runProgram(words());
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const [head, ...rows] = cells(out);
    expect(head).toEqual([
      "NAME",
      "ORGANIZATION",
      "DESIRED",
      "EFFECTIVE",
      "PIPES",
      "STATE",
      "SINCE",
      "REASON",
    ]);
    const size = "2 cpu / 8 Gi";
    expect(rows.toSorted((a, b) => ((a[0] ?? "") < (b[0] ?? "") ? -1 : 1))).toEqual([
      ["customers", "ACME", "-", "-", "-", "unknown", "-", "NoPipeScaling"],
      ["orders", "ACME", size, size, "2/2", "scaled", expect.stringMatching(/^\d+ s$/), "Scaled"],
    ]);
  });

  it("has more columns with --output wide", async () => {
    const { code, out, err } = await runProgram(words("--output", "wide"));
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(cells(out)[0]?.slice(-4)).toEqual(["BOOST", "IN PLACE", "FALLBACKS", "REQUEST ID"]);
    const one = await runProgram(words("orders", "--output", "wide"));
    expect({ code: one.code, err: one.err }).toEqual({ code: 0, err: "" });
    expect(one.out).toContain("SERVICE");
  });

  it("has bold headings on a terminal", async () => {
    const status = startInPty(process.execPath, [MAIN, ...words()], { columns: 120 });
    expect(await status.exitCode).toBe(0);
    expect(status.output()).toContain("\u001b[1mNAME");
    expect(status.screen().text).toMatch(/^orders +ACME .* scaled /m);
  });

  it("is printed as data with --output json, with sizes in the format of the API", async () => {
    const { out } = await runProgram(words("--output", "json"));
    const size = { replicaCpuMillicores: 2000, replicaMemoryGb: 8 };
    expect(JSON.parse(out)).toContainEqual({
      id: environment.serviceId,
      name: "orders",
      namespace: environment.pipes,
      organizationId: environment.organizationId,
      organization: "ACME",
      tier: "scale",
      state: "scaled",
      reason: "Scaled",
      message: "All 2 pipes run 2 cpu / 8 Gi.",
      since: expect.stringMatching(/^\d{4}-/),
      desired: size,
      source: "TierDefault",
      effective: size,
      pipes: { total: 2, updated: 2, pending: [] },
      limits: { service: 3, overall: 50, rolloutTimeoutSeconds: expect.any(Number) },
      startedAt: expect.stringMatching(/^\d{4}-/),
      completedAt: expect.stringMatching(/^\d{4}-/),
      conditions: [expect.objectContaining({ type: "Ready", status: "True" })],
      failures: [],
    });
  });

  it("omits a malformed service, and reports it", async () => {
    const name = `service-${randomUUID()}`;
    const record = serviceRecord({ organizationId: environment.organizationId, namespace: "Not_One" });
    await environment.create(CONFIG_MAPS, environment.records, {
      ...record,
      metadata: { ...record.metadata, name },
    });
    const { code, out, err } = await runProgram(words());
    await kubectl(environment.cluster, ["delete", "configmap", name, "-n", environment.records]);
    expect(err).toMatch(new RegExp(`^The record ${name} is malformed and was skipped: namespace: must be`));
    expect({ code, lines: cells(out).length }).toEqual({ code: 0, lines: 3 });
  });
});

describe("status of one service", () => {
  it("shows the progress and the details of a service that is given by name", async () => {
    const { code, out, err } = await runProgram(words("orders"));
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out.split("\n").slice(0, 7)).toEqual([
      "orders  2 cpu / 8 Gi (default of the tier)",
      expect.stringMatching(/^█{30} {2}2\/2 pipes {2}\d:\d\d$/),
      "All 2 pipes run 2 cpu / 8 Gi.",
      "",
      `SERVICE       ${environment.serviceId}`,
      `ORGANIZATION  ACME (${environment.organizationId}), tier scale`,
      `NAMESPACE     ${environment.pipes}`,
    ]);
    expect(out).toContain("\nCONDITIONS    Ready=True (Scaled)\n");
  });

  it("fits the width of the terminal", async () => {
    const status = startInPty(process.execPath, [MAIN, ...words("orders")], { columns: 50 });
    expect(await status.exitCode).toBe(0);
    const { lines } = status.screen();
    expect(lines[0]).toBe("orders  2 cpu / 8 Gi (default of the tier)");
    expect(status.output()).toContain("\u001b[32m█");
    expect(widest(status)).toBeLessThanOrEqual(50);
  });

  it("is printed as data with --output yaml, even if the ID is in uppercase", async () => {
    const { code, out } = await runProgram(words(environment.serviceId.toUpperCase(), "--output", "yaml"));
    expect(code).toBe(0);
    expect(parse(out)).toMatchObject({
      id: environment.serviceId,
      pipes: { total: 2, updated: 2, pending: [] },
    });
  });

  it("reports what is missing if the service has no pipes", async () => {
    const { code, out } = await runProgram(words("customers"));
    expect(code).toBe(0);
    expect(out).toMatch(/^customers\n/);
    expect(out).toContain(
      `with the labels pipes.clouddb.dev/service=${empty} and pipes.clouddb.dev/type=database`,
    );
  });

  it("fails for an unknown service, and names the command that lists all services", async () => {
    for (const named of ["invoices", randomUUID()]) {
      const { code, out, err } = await runProgram(words(named));
      expect({ code, out }).toEqual({ code: 1, out: "" });
      expect(err).toBe(
        `There is no service "${named}" in the namespace ${environment.records}: \`pipe-scaling admin service list --kubeconfig ${environment.cluster.kubeconfig} --namespace ${environment.records}\` lists all services.\n`,
      );
    }
  });

  it("fails if two services have this name, and prints both IDs", async () => {
    const ids = [await addService("twins"), await addService("twins")].sort();
    const { code, err } = await runProgram(words("twins"));
    expect(code).toBe(1);
    expect(err).toMatch(/^2 services have the name "twins". Specify one of these IDs:\n/);
    const printed = [...err.matchAll(/^ {2}(\S+) {2}\(organization /gm)].map(([, id]) => id);
    expect(printed.toSorted()).toEqual(ids);
  });
});

describe("incompatible flags", () => {
  it.each([
    [["--watch"], "--watch needs the ID or the name of a service."],
    [["orders", "--timeout", "5m"], "--timeout needs --watch."],
    [["orders", "--watch", "--timeout", "soon"], '--timeout is "soon", but it must be a duration'],
  ])("are rejected with the reason: %j", async (flags, sentence) => {
    const { code, err } = await runProgram(words(...flags));
    expect(code).toBe(2);
    expect(err).toContain(sentence);
  });
});

describe("status with few permissions", () => {
  /** Creates an account with one Role in each of the two namespaces. */
  async function account(name: string, inPipes: object[]): Promise<string> {
    const { cluster, records, pipes } = environment;
    const rbac = "rbac.authorization.k8s.io";
    const role = (namespace: string, rules: object[]) => [
      { apiVersion: `${rbac}/v1`, kind: "Role", metadata: { name, namespace }, rules },
      {
        apiVersion: `${rbac}/v1`,
        kind: "RoleBinding",
        metadata: { name, namespace },
        roleRef: { apiGroup: rbac, kind: "Role", name },
        subjects: [{ kind: "ServiceAccount", name, namespace: records }],
      },
    ];
    await apply(cluster, [
      { apiVersion: "v1", kind: "ServiceAccount", metadata: { name, namespace: records } },
      ...role(records, [{ apiGroups: [""], resources: ["configmaps"], verbs: ["list"] }]),
      ...role(pipes, inPipes),
    ]);
    return serviceAccountKubeconfig(cluster, records, name);
  }
  const reading = { verbs: ["list"] };
  const scalings = { apiGroups: ["pipes.clouddb.dev"], resources: ["pipescalings"], ...reading };

  const statusAs = (kubeconfig: string, ...flags: string[]) =>
    runProgram(["status", "--kubeconfig", kubeconfig, "--namespace", environment.records, ...flags]);

  it("needs permission only to list the records and the PipeScalings", async () => {
    const kubeconfig = await account("reader", [scalings]);
    const table = await statusAs(kubeconfig);
    expect(table).toMatchObject({ code: 0, err: "" });
    expect(table.out).toMatch(/^orders .* scaled /m);
    expect(await statusAs(kubeconfig, "orders", "--watch")).toMatchObject({ code: 0, err: "" });
  });

  it("fails without permission to list PipeScalings", async () => {
    const kubeconfig = await account("stranger", []);
    for (const words of [[], ["orders"]]) {
      const { code, err } = await statusAs(kubeconfig, ...words);
      expect(code).toBe(1);
      expect(err).toMatch(/^The Kubernetes API rejected the request: .* cannot list resource "pipescalings"/);
    }
  });
});

// These tests run last, because they leave the service in a failed state.
describe("status of a service that is not ready", () => {
  it("shows the state of each pipe during a rescale", async () => {
    await createHeldPipe(environment, "pipe-c");
    // A write that conflicts with one of Kubernetes is repeated first.
    const isRolling = async () =>
      (await environment.scaling()).status?.pipes?.pending?.some(({ state }) => state === "Rolling");
    await waitFor(isRolling, { what: "the rollout of the pipe" });
    const { code, out } = await runProgram(words("orders"));
    expect(code).toBe(0);
    expect(out).toMatch(/^ {2}▸ pipe-c {2}Rolling/m);
    expect(out).toMatch(/^CONDITIONS {4}Ready=False \(Progressing\), Reconciling=True \(Progressing\)$/m);
    expect(out).toContain(
      `status ${environment.serviceId} --watch --kubeconfig ${environment.cluster.kubeconfig} --namespace ${environment.records}`,
    );
    await release(environment, "pipe-c");
    await kubectl(environment.cluster, ["delete", "deployment", "pipe-c", "-n", environment.pipes]);
    await environment.waitForCondition("Ready", "True");
  });

  it("ends with exit code 3 after a failure, and shows the cause, the number of attempts and the next step", async () => {
    await environment.createPipe({ name: "pipe-d", cores: 1, containers: ["pipe", "sidecar"] });
    await environment.waitForCondition("Stalled", "True");
    const { code, out } = await runProgram(words("orders"));
    expect(code).toBe(3);
    expect(out).toMatch(/^ {2}✗ pipe-d .*it has the containers pipe, sidecar: set the annotation/m);
    expect(out).toMatch(/^FAILURE {7}pipe-d: ContainerUnclear, 1 attempt, \d+ s ago: /m);
    expect(out).toMatch(/^NEXT {10}Find the cause: kubectl describe deployment pipe-d/m);
    expect((await runProgram(words())).code).toBe(3);
  });
});
