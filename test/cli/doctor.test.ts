import { randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { apply, kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { serviceAccountKubeconfig } from "@pipe-scaling/local-cluster/service-account";
import { NEVER_READY_LABEL } from "@pipe-scaling/local-cluster/stages";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import packageJson from "../../package.json" with { type: "json" };
import { runChecks } from "../../src/cli/doctor/checks.ts";
import type { CheckResult } from "../../src/cli/doctor/result.ts";
import { LEASE_NAME } from "../../src/controller/names.ts";
import {
  HORIZONTAL_AUTOSCALERS,
  VERTICAL_AUTOSCALERS,
} from "../../src/controller/observe/autoscaler-view.ts";
import { crdManifest } from "../../src/crd/manifest.ts";
import { API_VERSION, KIND, PIPE_SCALINGS } from "../../src/crd/names.ts";
import { CONFIG_MAPS, LEASES, objectPath, SECRETS } from "../../src/kube/paths.ts";
import { backupConfigMap } from "../../src/records/backup.ts";
import { keyUsageConfigMap } from "../../src/records/key-usage.ts";
import { membersConfigMap } from "../../src/records/members.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { keyRecord, organizationRecord, serviceRecord } from "../support/fixtures/records.ts";
import {
  accountName,
  nodesRoleName,
  recordsRoleName,
  shippedAccount,
} from "../support/fixtures/shipped-account.ts";
import { VERTICAL_CRD } from "../support/fixtures/vertical-autoscaler.ts";
import { MAIN, runProgram } from "../support/terminal/program.ts";
import { startInPty, widest } from "../support/terminal/pty.ts";
import { TestEnvironment } from "../support/test-environment.ts";
import { knownPipeScalings } from "./held-pipes.ts";
import { shippedDeployments } from "./shipped-deployments.ts";

/*
 * Each finding is provoked once, on a cluster of its own: its definition is taken away in the end. The tests go
 * on from each other: the first finds nothing wrong, and each leaves behind what it has found.
 */

const VERSION_LABEL = "app.kubernetes.io/version";

let cluster: Cluster;
let environment: TestEnvironment;
let stopController: () => Promise<void>;

beforeAll(async () => {
  cluster = await startCluster();
  await apply(cluster, [VERTICAL_CRD]);
  environment = await TestEnvironment.create("basic", cluster);
  await knownPipeScalings(environment);
  await apply(cluster, [
    ...shippedAccount("api", environment.records),
    ...shippedDeployments(environment.records),
  ]);
  stopController = await environment.startController({ pipeNamespaces: [] });
  await environment.createPipe({ name: "pipe-a", cores: 1 });
  await environment.waitForCondition("Ready", "True");
  await kubectl(cluster, [
    "wait",
    "--for=condition=Available",
    "deployment",
    "--all",
    "-n",
    environment.records,
    "--timeout=60s",
  ]);
});
afterAll(async () => {
  await environment?.end();
  await cluster?.stop();
});

function words(...flags: string[]): string[] {
  return ["doctor", "--kubeconfig", cluster.kubeconfig, "--namespace", environment.records, ...flags];
}

interface Examined {
  readonly code: number | null;
  readonly results: readonly CheckResult[];
}

async function examined(args = words()): Promise<Examined> {
  const { code, out, err } = await runProgram([...args, "--output", "json"]);
  if (out === "") throw new Error(`no results: ${err}`);
  return { code, results: JSON.parse(out).results };
}

/** The one that matches; the test fails with all of them if there is none. */
function expectResult(
  { results }: Examined,
  severity: CheckResult["severity"],
  message: RegExp,
): CheckResult {
  const found = results.find((each) => message.test(each.message));
  expect(found ?? results).toMatchObject({ severity });
  if (!found) throw new Error("no such result");
  if (severity !== "ok") expect(found.remedy).toMatch(/\S/);
  return found;
}

/** Of the machine that runs the tests, not of what is installed on it. */
const SLOW = /^The API server takes \d+ ms/;

function ill({ results }: Examined): readonly CheckResult[] {
  return results.filter(
    ({ severity, message }) => (severity === "error" || severity === "warning") && !SLOW.test(message),
  );
}

/** Once the status of what is looked at has come to that. */
function examinedUntil(message: RegExp): Promise<Examined> {
  return waitFor(
    async () => {
      const seen = await examined();
      return seen.results.some((each) => message.test(each.message)) && seen;
    },
    { what: `${message} among the results` },
  );
}

async function settledController(): Promise<void> {
  await waitFor(async () => (await environment.scaling()).status?.observedGeneration !== undefined, {
    what: "the controller",
  });
}

describe("a healthy installation", () => {
  it("has nothing wrong, which is told with what was looked at", async () => {
    const all = await examined();
    expect(ill(all)).toEqual([]);
    expect(all.code).toBe(0);
    expectResult(all, "ok", /is reachable and runs Kubernetes v1\.\d+/);
    expect(all.results.map(({ message }) => message)).toContainEqual(
      expect.stringMatching(/^The API server (responds in|takes) \d+ ms/),
    );
    expectResult(all, "ok", /clocks .* agree/);
    expectResult(all, "ok", /CRD of PipeScaling is that of this release/);
    for (const component of ["api", "controller"]) {
      expectResult(all, "ok", new RegExp(`^The ${component} is ready: 2 of 2 pods`));
      expectResult(all, "ok", new RegExp(`^The account of the ${component}, .* has all permissions`));
    }
    expectResult(all, "ok", /^The controller .* is the leader/);
    expectResult(all, "ok", /^The records are well-formed: organizations 1, services 1, keys 0\.$/);
    expectResult(all, "ok", /^The pipes can be resized: 1\.$/);
    expect(all.results.filter(({ severity }) => severity === "note")).toEqual([]);
  });

  it("is told beside a clock of this machine that is wrong", async () => {
    const report = await runChecks({
      client: environment.client,
      clock: { ...systemClock, now: () => Date.now() + 3_600_000 },
      signal: new AbortController().signal,
      records: environment.records,
      tiers: undefined,
      ownVersion: packageJson.version,
    });
    const all = { code: null, results: report.all };
    expectResult(all, "warning", /^The clock of this machine is 60 min ahead of that of the API server/);
    // The lease is not held against that clock.
    expectResult(all, "ok", /^The controller .* is the leader; it renewed its lease \d s ago/);
    expect(ill(all)).toHaveLength(1);
  });

  it("is told to people in a terminal, in its width", async () => {
    const doctor = startInPty(process.execPath, [MAIN, ...words()], { columns: 60 });
    expect(await doctor.exitCode).toBe(0);
    const { lines } = doctor.screen();
    expect(lines.at(-1)).toBe("0 errors, 0 warnings, 0 notes.");
    expect(lines[0]).toMatch(/^ok {7}https:/);
    expect(doctor.output()).toContain("\u001b[32mok");
    expect(widest(doctor)).toBeLessThanOrEqual(60);
  });

  it("is told in a pipe as YAML too", async () => {
    const { code, out, err } = await runProgram(words("--output", "yaml"));
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(/^results:\n {2}- severity: ok\n/);
  });
});

describe("records", () => {
  it("that are malformed are named, each with what is wrong and how to edit it", async () => {
    const id = randomUUID();
    const add = (record: object) => environment.create(CONFIG_MAPS, environment.records, record);
    const organization = organizationRecord({ id: randomUUID() }, { createdAt: "yesterday" });
    const service = serviceRecord({ organizationId: environment.organizationId, namespace: "Not_One" });
    const members = membersConfigMap(id, []);
    const backup = backupConfigMap(id, environment.organizationId, {
      periodInHours: 24,
      retentionPeriodInHours: 24,
      startTime: undefined,
    });
    const usage = keyUsageConfigMap(id, new Map());
    const odd = {
      ...members,
      metadata: { name: "odd", labels: { ...members.metadata.labels, "pipes.clouddb.dev/resource": "pipe" } },
    };
    await add(organization);
    await add(service);
    await add({ ...members, data: { "u-1": "{}" } });
    await add({ ...backup, data: { backupPeriodInHours: "7" } });
    await add({ ...usage, data: { [id]: "never" } });
    await add(odd);
    const { record } = keyRecord({ organizationId: environment.organizationId });
    await environment.create(SECRETS, environment.records, {
      ...record,
      stringData: { ...record.stringData, state: "on" },
    });
    const all = await examined();
    expect(all.code).toBe(3);
    const edits = (kind: string, name: string, problem: RegExp) => {
      const found = expectResult(
        all,
        "error",
        new RegExp(`^The ${kind} ${name} is malformed: .*${problem.source}`),
      );
      expect(found.remedy).toBe(`kubectl edit ${kind} ${name} --namespace ${environment.records}`);
    };
    edits("configmap", organization.metadata.name, /createdAt: must be a date/);
    edits("configmap", service.metadata.name, /namespace: must be a namespace name/);
    edits("configmap", members.metadata.name, /u-1: /);
    edits("configmap", backup.metadata.name, /backupPeriodInHours: must be one of/);
    edits("configmap", usage.metadata.name, /must be a date/);
    edits("configmap", "odd", /"pipe", which is no kind of record/);
    edits("secret", record.metadata.name, /state: must be enabled or disabled/);
  });

  it("that speak of what there is not are named", async () => {
    const { organizationId } = environment;
    const add = (record: object) => environment.create(CONFIG_MAPS, environment.records, record);
    await add(organizationRecord({ name: "Untiered", tier: "golden" }));
    await add(serviceRecord({ name: "orphan", organizationId: randomUUID(), namespace: environment.pipes }));
    await add(serviceRecord({ name: "nowhere", organizationId, namespace: `${environment.pipes}-none` }));
    const ending = `${environment.pipes}-ending`;
    await add(serviceRecord({ name: "ending", organizationId, namespace: ending }));
    await apply(cluster, [
      { apiVersion: "v1", kind: "Namespace", metadata: { name: ending } },
      {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name: "stays", namespace: ending, finalizers: ["test.pipes.clouddb.dev/stay"] },
      },
    ]);
    await kubectl(cluster, ["delete", "namespace", ending, "--wait=false"]);
    await environment.create(
      SECRETS,
      environment.records,
      keyRecord({ name: "unowned", organizationId: randomUUID() }).record,
    );
    const all = await examined();
    expectResult(all, "error", /^The organization Untiered has the unknown tier "golden".* basic, /);
    expectResult(all, "error", /^The service orphan .* which has no well-formed record/);
    expectResult(
      all,
      "error",
      /^The service nowhere .* the namespace .*-none for its pipes, which does not exist/,
    );
    expectResult(all, "warning", /^The service ending .*-ending, which is being deleted/);
    expectResult(all, "warning", /^The API key unowned .* has no well-formed record/);
  });

  it("are held against the tiers of a file in place of the installed ones", async () => {
    const file = join(cluster.dir, "tiers.yaml");
    const tier = { defaultCpuMillicores: 1000, maximumCpuMillicores: 2000 };
    writeFileSync(file, JSON.stringify({ golden: tier }));
    const all = await examined(words("--tiers-file", file));
    expectResult(all, "error", /^The organization ACME has the unknown tier "basic".* golden\.$/);
    expect(all.results.filter(({ message }) => message.includes("Untiered"))).toEqual([]);
  });
});

describe("PipeScalings and pipes", () => {
  const scaling = (name: string) => ({ apiVersion: API_VERSION, kind: KIND, metadata: { name } });
  const target = { apiVersion: "apps/v1", kind: "Deployment", name: "pipe-a" };

  it("that are nobody's, or cannot be resized, are named", async () => {
    const unknown = randomUUID();
    await environment.create(PIPE_SCALINGS, environment.pipes, scaling(unknown));
    await environment.create(PIPE_SCALINGS, environment.records, scaling(environment.serviceId));
    await environment.createPipe({ name: "pipe-lost", cores: 1, serviceId: unknown });
    await environment.createPipe({ name: "pipe-double", cores: 1, containers: ["pipe", "sidecar"] });
    await environment.createPipe({ name: "pipe-paused", cores: 1 });
    await environment.patchPipe("pipe-paused", { spec: { paused: true } });
    await environment.create(HORIZONTAL_AUTOSCALERS, environment.pipes, {
      apiVersion: HORIZONTAL_AUTOSCALERS.apiVersion,
      kind: "HorizontalPodAutoscaler",
      metadata: { name: "more" },
      spec: {
        scaleTargetRef: target,
        maxReplicas: 3,
        metrics: [
          {
            type: "Resource",
            resource: { name: "cpu", target: { type: "Utilization", averageUtilization: 80 } },
          },
        ],
      },
    });
    await environment.create(VERTICAL_AUTOSCALERS, environment.pipes, {
      apiVersion: VERTICAL_AUTOSCALERS.apiVersion,
      kind: "VerticalPodAutoscaler",
      metadata: { name: "bigger" },
      spec: { targetRef: target },
    });
    await environment.waitForCondition("Stalled", "True");
    const all = await examined();
    expect(all.code).toBe(3);
    expectResult(
      all,
      "warning",
      new RegExp(`^The PipeScaling ${environment.pipes}/${unknown} belongs to a service without`),
    );
    expectResult(
      all,
      "warning",
      new RegExp(
        `^The PipeScaling ${environment.records}/${environment.serviceId} is not in ${environment.pipes}`,
      ),
    );
    expectResult(all, "error", /^The rescale of orders failed/);
    expectResult(all, "warning", /pipe-lost has the label .* but this service has no well-formed record/);
    const double = expectResult(
      all,
      "error",
      /pipe-double cannot be resized: it has the containers pipe, sidecar/,
    );
    expect(double.remedy).toContain("kubectl annotate deployment pipe-double");
    expectResult(all, "note", /pipe-paused is paused by its owner/);
    expectResult(all, "note", /pipe-a gets its replicas from the HorizontalPodAutoscaler more/);
    expectResult(all, "error", /pipe-a is also resized by the VerticalPodAutoscaler bigger/);
  });

  it("that are suspended are noted", async () => {
    await environment.patchScaling({ suspend: true });
    await environment.waitForCondition("Ready", "Unknown", "Suspended");
    expectResult(await examined(), "note", /^The pipes of orders are suspended since /);
  });
});

describe("the two processes", () => {
  const deployment = (component: "api" | "controller") => [
    "deployment",
    accountName(component),
    "-n",
    environment.records,
  ];

  it("that are scaled to nothing, being rolled out, or of another version, are named", async () => {
    await kubectl(cluster, ["scale", ...deployment("api"), "--replicas", "0"]);
    const unready = { spec: { template: { metadata: { labels: { [NEVER_READY_LABEL]: "true" } } } } };
    await kubectl(cluster, ["patch", ...deployment("controller"), "-p", JSON.stringify(unready)]);
    await kubectl(cluster, ["label", ...deployment("controller"), "--overwrite", `${VERSION_LABEL}=9.9.9`]);
    const all = await examinedUntil(/^A rollout of the controller is in progress: 1 of 2 pods/);
    expectResult(all, "note", /^A rollout of the controller is in progress/);
    expectResult(all, "error", /^The api is scaled to zero/);
    expectResult(all, "warning", /^The controller has version 9\.9\.9, and this program /);
  });

  it("that are not ready are named, with where to look", async () => {
    const pods = ["pods", "-n", environment.records, "--selector", "app.kubernetes.io/component=controller"];
    await kubectl(cluster, ["label", ...pods, "--overwrite", `${NEVER_READY_LABEL}=true`]);
    const all = await examinedUntil(/^The controller is not ready: 0 of 2 pods/);
    expect(expectResult(all, "error", /is not ready/).remedy).toContain("kubectl logs deployment/");
  });

  it("that lack a right are named with what does not work without it", async () => {
    await kubectl(cluster, ["delete", "rolebinding", recordsRoleName("api"), "-n", environment.records]);
    const lacking = /^The account of the api, .* may not list, watch secrets in .*, so no key is known/;
    const found = expectResult(await examinedUntil(lacking), "error", lacking);
    expect(found.remedy).toContain("helm upgrade");
  });

  it("that lack a right that they can do without are only noted, with the value that gives it", async () => {
    await kubectl(cluster, ["delete", "clusterrolebinding", nodesRoleName(environment.records)]);
    const lacking =
      /^The account of the controller, .* may not list nodes in all namespaces, so a size that fits/;
    const found = expectResult(await examinedUntil(lacking), "note", lacking);
    expect(found.remedy).toContain("rbac.nodes=true");
  });

  it("that are not there, or work by other records, are named", async () => {
    await kubectl(cluster, ["delete", ...deployment("api")]);
    expectResult(await examined(), "error", /^The api is not installed, so no size can be requested/);
    const elsewhere = ["doctor", "--kubeconfig", cluster.kubeconfig, "--namespace", "default"];
    const all = await examined(elsewhere);
    expectResult(
      all,
      "error",
      new RegExp(`uses the records of the namespace ${environment.records}, not those`),
    );
    expectResult(all, "note", /^The namespace default has no records yet\.$/);
    const nowhere = ["doctor", "--kubeconfig", cluster.kubeconfig, "--namespace", "none"];
    expectResult(await examined(nowhere), "error", /^The namespace none of the records does not exist\.$/);
    await kubectl(cluster, ["delete", ...deployment("controller")]);
    expectResult(await examined(), "note", /^No Deployment has the labels of the chart/);
  });
});

describe("the lease", () => {
  it("that nobody holds is named, with what nobody looks at meanwhile", async () => {
    await settledController();
    await stopController();
    await environment.patchScaling({ suspend: false });
    const all = await examined();
    expectResult(
      all,
      "error",
      /^No controller holds the Lease pipe-scaling-controller: the last one released it \d+ s ago/,
    );
    expectResult(all, "warning", /^orders: No controller has observed the newest change yet\.$/);
    await environment.client.json({
      method: "DELETE",
      path: objectPath(PIPE_SCALINGS, environment.pipes, environment.serviceId),
    });
    expectResult(await examined(), "warning", /^The service orders .* has pipes in .*, but no PipeScaling/);
  });

  it("that is not renewed any more is named with who holds it", async () => {
    await environment.client.json({
      method: "PATCH",
      path: objectPath(LEASES, environment.records, LEASE_NAME),
      patchType: "application/merge-patch+json",
      body: { spec: { holderIdentity: "sleeper", renewTime: "2026-01-01T00:00:00.000000Z" } },
    });
    expectResult(
      await examined(),
      "error",
      /^The controller sleeper holds the Lease .* last renewed it \d+ d ago/,
    );
  });

  it("that was never there is named", async () => {
    await environment.client.json({
      method: "DELETE",
      path: objectPath(LEASES, environment.records, LEASE_NAME),
    });
    expectResult(await examined(), "error", /^There is no Lease in /);
  });
});

describe("who may see little", () => {
  it("is told what was not looked at", async () => {
    await kubectl(cluster, ["create", "serviceaccount", "stranger", "-n", environment.records]);
    const kubeconfig = await serviceAccountKubeconfig(cluster, environment.records, "stranger");
    const all = await examined(["doctor", "--kubeconfig", kubeconfig, "--namespace", environment.records]);
    expect(all.code).toBe(0);
    expect(ill(all)).toEqual([]);
    const unseen = all.results.filter(({ message }) => message.startsWith("Not checked: you may not "));
    expect(unseen.map(({ check }) => check)).toEqual(["crd", "installation", "lease", "records", "records"]);
  });

  it("or nothing at all, is told why", async () => {
    const kubeconfig = await serviceAccountKubeconfig(cluster, environment.records, "stranger");
    const text = readFileSync(kubeconfig, "utf8");
    writeFileSync(kubeconfig, text.replace(cluster.server, "https://127.0.0.1:1"));
    const unreached = await examined(["doctor", "--kubeconfig", kubeconfig]);
    expectResult(unreached, "error", /^https:\/\/127\.0\.0\.1:1 cannot be reached: /);
    writeFileSync(kubeconfig, text.replace(/token: .*/, "token: none"));
    const refused = await examined(["doctor", "--kubeconfig", kubeconfig]);
    expectResult(refused, "error", /does not accept the credentials of the kubeconfig\.$/);
    expect([unreached.code, refused.code]).toEqual([3, 3]);
    const { code, err } = await runProgram(["doctor", "--kubeconfig", `${kubeconfig}.none`]);
    expect(code).toBe(1);
    expect(err).toContain("does not exist");
  });
});

describe("the definition", () => {
  type Manifest = {
    spec: {
      versions: {
        served: boolean;
        schema: { openAPIV3Schema: { properties: Record<string, { properties: Record<string, object> }> } };
      }[];
    };
  };
  const manifest = (): Manifest => JSON.parse(JSON.stringify(crdManifest()));

  async function define(
    change: (properties: Record<string, object>, version: Manifest["spec"]["versions"][0]) => void,
  ) {
    const changed = manifest();
    const [version] = changed.spec.versions;
    const properties = version?.schema.openAPIV3Schema.properties["spec"]?.properties;
    if (!version || !properties) throw new Error("the definition has a version with a spec");
    change(properties, version);
    await kubectl(cluster, ["replace", "-f", "-"], { input: JSON.stringify(changed) });
    return await examined();
  }

  it("that is older, newer or another is named", async () => {
    const older = await define((properties) => {
      delete properties["suspend"];
    });
    expectResult(older, "warning", /is older than this program: it has no spec\.suspend\.$/);
    const newer = await define((properties) => {
      properties["color"] = { type: "string" };
    });
    expectResult(newer, "warning", /is newer than this program, which does not know spec\.color\.$/);
    const other = await define((properties) => {
      properties["suspend"] = { type: "boolean" };
    });
    expectResult(other, "warning", /differs from that of this program/);
  });

  it("that does not serve the version, is being deleted, or is not there, is named", async () => {
    const unserved = await define((_, version) => {
      version.served = false;
    });
    expectResult(unserved, "error", /does not serve v1beta1/);
    await define(() => undefined);
    await environment.create(PIPE_SCALINGS, environment.pipes, {
      apiVersion: API_VERSION,
      kind: KIND,
      metadata: { name: "stays", finalizers: ["test.pipes.clouddb.dev/stay"] },
    });
    await kubectl(cluster, ["delete", "crd", PIPE_SCALINGS_CRD, "--wait=false"]);
    expectResult(await examined(), "error", /is being deleted with every PipeScaling/);
    await kubectl(cluster, [
      "patch",
      "psc",
      "stays",
      "-n",
      environment.pipes,
      "--type=merge",
      "-p",
      '{"metadata":{"finalizers":null}}',
    ]);
    await kubectl(cluster, ["wait", "--for=delete", `crd/${PIPE_SCALINGS_CRD}`, "--timeout=60s"]);
    const all = await examined();
    expect(all.code).toBe(3);
    expectResult(
      all,
      "error",
      /^There is no CustomResourceDefinition pipescalings\.pipes\.clouddb\.dev: nothing is resized/,
    );
  });
});

const PIPE_SCALINGS_CRD = "pipescalings.pipes.clouddb.dev";
