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
import { examine } from "../../src/cli/doctor/examine.ts";
import type { Finding } from "../../src/cli/doctor/finding.ts";
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
import { keyRecord, organizationRecord, serviceRecord } from "../gen/records.ts";
import { accountName, nodesRoleName, recordsRoleName, shippedAccount } from "../gen/shipped-account.ts";
import { VERTICAL_CRD } from "../gen/vertical-autoscaler.ts";
import { World } from "../integration/world.ts";
import { knownPipeScalings } from "./held-pipes.ts";
import { MAIN, runProgram } from "./program.ts";
import { startInPty, widest } from "./pty.ts";
import { shippedDeployments } from "./shipped-deployments.ts";

/*
 * Each finding is provoked once, on a cluster of its own: its definition is taken away in the end. The tests go
 * on from each other: the first finds nothing wrong, and each leaves behind what it has found.
 */

const VERSION_LABEL = "app.kubernetes.io/version";

let cluster: Cluster;
let world: World;
let stopController: () => Promise<void>;

beforeAll(async () => {
  cluster = await startCluster();
  await apply(cluster, [VERTICAL_CRD]);
  world = await World.create("basic", cluster);
  await knownPipeScalings(world);
  await apply(cluster, [...shippedAccount("api", world.records), ...shippedDeployments(world.records)]);
  stopController = await world.startController({ pipeNamespaces: [] });
  await world.createPipe({ name: "pipe-a", cores: 1 });
  await world.waitForCondition("Ready", "True");
  await kubectl(cluster, [
    "wait",
    "--for=condition=Available",
    "deployment",
    "--all",
    "-n",
    world.records,
    "--timeout=60s",
  ]);
});
afterAll(async () => {
  await world?.end();
  await cluster?.stop();
});

function words(...flags: string[]): string[] {
  return ["doctor", "--kubeconfig", cluster.kubeconfig, "--namespace", world.records, ...flags];
}

interface Examined {
  readonly code: number | null;
  readonly findings: readonly Finding[];
}

async function examined(args = words()): Promise<Examined> {
  const { code, out, err } = await runProgram([...args, "--output", "json"]);
  if (out === "") throw new Error(`no findings: ${err}`);
  return { code, findings: JSON.parse(out).findings };
}

/** The one that matches; the test fails with all of them if there is none. */
function expectFinding({ findings }: Examined, severity: Finding["severity"], message: RegExp): Finding {
  const found = findings.find((each) => message.test(each.message));
  expect(found ?? findings).toMatchObject({ severity });
  if (!found) throw new Error("no such finding");
  if (severity !== "ok") expect(found.remedy).toMatch(/\S/);
  return found;
}

/** Of the machine that runs the tests, not of what is installed on it. */
const SLOW = /^It takes \d+ ms to answer/;

function ill({ findings }: Examined): readonly Finding[] {
  return findings.filter(
    ({ severity, message }) => (severity === "error" || severity === "warning") && !SLOW.test(message),
  );
}

/** Once the status of what is looked at has come to that. */
function examinedUntil(message: RegExp): Promise<Examined> {
  return waitFor(
    async () => {
      const seen = await examined();
      return seen.findings.some((each) => message.test(each.message)) && seen;
    },
    { what: `${message} among the findings` },
  );
}

async function settledController(): Promise<void> {
  await waitFor(async () => (await world.scaling()).status?.observedGeneration !== undefined, {
    what: "the controller",
  });
}

describe("a healthy installation", () => {
  it("has nothing wrong, which is told with what was looked at", async () => {
    const all = await examined();
    expect(ill(all)).toEqual([]);
    expect(all.code).toBe(0);
    expectFinding(all, "ok", /is reached; it is Kubernetes v1\.\d+/);
    expect(all.findings.map(({ message }) => message)).toContainEqual(
      expect.stringMatching(/^It (answers in \d+ ms\.$|takes \d+ ms to answer)/),
    );
    expectFinding(all, "ok", /clocks .* agree/);
    expectFinding(all, "ok", /definition of PipeScaling is that of this release/);
    for (const component of ["api", "controller"]) {
      expectFinding(all, "ok", new RegExp(`^The ${component} is ready: 2 of 2 pods`));
      expectFinding(all, "ok", new RegExp(`^The account of the ${component}, .* has all rights`));
    }
    expectFinding(all, "ok", /^The controller .* is at work/);
    expectFinding(all, "ok", /^The records are well-formed: organizations 1, services 1, keys 0\.$/);
    expectFinding(all, "ok", /^The pipes can be resized: 1\.$/);
    expect(all.findings.filter(({ severity }) => severity === "note")).toEqual([]);
  });

  it("is told beside a clock of this machine that is wrong", async () => {
    const findings = await examine({
      client: world.client,
      clock: { ...systemClock, now: () => Date.now() + 3_600_000 },
      signal: new AbortController().signal,
      records: world.records,
      tiers: undefined,
      ownVersion: packageJson.version,
    });
    const all = { code: null, findings: findings.all };
    expectFinding(all, "warning", /^The clock of this machine is 60 min ahead of that of the API server/);
    // The lease is not held against that clock.
    expectFinding(all, "ok", /^The controller .* is at work; it has renewed its lease \d s ago/);
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
    expect(out).toMatch(/^findings:\n {2}- severity: ok\n/);
  });
});

describe("records", () => {
  it("that are malformed are named, each with what is wrong and how to edit it", async () => {
    const id = randomUUID();
    const add = (record: object) => world.create(CONFIG_MAPS, world.records, record);
    const organization = organizationRecord({ id: randomUUID() }, { createdAt: "yesterday" });
    const service = serviceRecord({ organizationId: world.organizationId, namespace: "Not_One" });
    const members = membersConfigMap(id, []);
    const backup = backupConfigMap(id, world.organizationId, {
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
    const { record } = keyRecord({ organizationId: world.organizationId });
    await world.create(SECRETS, world.records, {
      ...record,
      stringData: { ...record.stringData, state: "on" },
    });
    const all = await examined();
    expect(all.code).toBe(3);
    const edits = (kind: string, name: string, problem: RegExp) => {
      const found = expectFinding(
        all,
        "error",
        new RegExp(`^The ${kind} ${name} is malformed: .*${problem.source}`),
      );
      expect(found.remedy).toBe(`kubectl edit ${kind} ${name} --namespace ${world.records}`);
    };
    edits("configmap", organization.metadata.name, /createdAt: must be a date/);
    edits("configmap", service.metadata.name, /namespace: must be the name of a namespace/);
    edits("configmap", members.metadata.name, /u-1: /);
    edits("configmap", backup.metadata.name, /backupPeriodInHours: must be one of/);
    edits("configmap", usage.metadata.name, /must be a date/);
    edits("configmap", "odd", /"pipe", which is no kind of record/);
    edits("secret", record.metadata.name, /state: must be enabled or disabled/);
  });

  it("that speak of what there is not are named", async () => {
    const { organizationId } = world;
    const add = (record: object) => world.create(CONFIG_MAPS, world.records, record);
    await add(organizationRecord({ name: "Untiered", tier: "golden" }));
    await add(serviceRecord({ name: "orphan", organizationId: randomUUID(), namespace: world.pipes }));
    await add(serviceRecord({ name: "nowhere", organizationId, namespace: `${world.pipes}-none` }));
    const ending = `${world.pipes}-ending`;
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
    await world.create(
      SECRETS,
      world.records,
      keyRecord({ name: "stray", organizationId: randomUUID() }).record,
    );
    const all = await examined();
    expectFinding(
      all,
      "error",
      /^The organization Untiered has the tier "golden", which there is not.* basic, /,
    );
    expectFinding(all, "error", /^The service orphan .* of which there is no record that can be read/);
    expectFinding(
      all,
      "error",
      /^The pipes of the service nowhere .* in the namespace .*-none, which there is not/,
    );
    expectFinding(all, "warning", /^The namespace .*-ending of the service ending .* is being deleted/);
    expectFinding(all, "warning", /^The API key stray .* of which there is no record/);
  });

  it("are held against the tiers of a file in place of the installed ones", async () => {
    const file = join(cluster.dir, "tiers.yaml");
    const tier = { defaultCpuMillicores: 1000, maximumCpuMillicores: 2000 };
    writeFileSync(file, JSON.stringify({ golden: tier }));
    const all = await examined(words("--tiers-file", file));
    expectFinding(
      all,
      "error",
      /^The organization ACME has the tier "basic", which there is not.* golden\.$/,
    );
    expect(all.findings.filter(({ message }) => message.includes("Untiered"))).toEqual([]);
  });
});

describe("PipeScalings and pipes", () => {
  const scaling = (name: string) => ({ apiVersion: API_VERSION, kind: KIND, metadata: { name } });
  const target = { apiVersion: "apps/v1", kind: "Deployment", name: "pipe-a" };

  it("that are nobody's, or cannot be resized, are named", async () => {
    const unknown = randomUUID();
    await world.create(PIPE_SCALINGS, world.pipes, scaling(unknown));
    await world.create(PIPE_SCALINGS, world.records, scaling(world.serviceId));
    await world.createPipe({ name: "pipe-lost", cores: 1, serviceId: unknown });
    await world.createPipe({ name: "pipe-double", cores: 1, containers: ["pipe", "sidecar"] });
    await world.createPipe({ name: "pipe-paused", cores: 1 });
    await world.patchPipe("pipe-paused", { spec: { paused: true } });
    await world.create(HORIZONTAL_AUTOSCALERS, world.pipes, {
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
    await world.create(VERTICAL_AUTOSCALERS, world.pipes, {
      apiVersion: VERTICAL_AUTOSCALERS.apiVersion,
      kind: "VerticalPodAutoscaler",
      metadata: { name: "bigger" },
      spec: { targetRef: target },
    });
    await world.waitForCondition("Stalled", "True");
    const all = await examined();
    expect(all.code).toBe(3);
    expectFinding(
      all,
      "warning",
      new RegExp(`^The PipeScaling ${world.pipes}/${unknown} is of a service of which`),
    );
    expectFinding(
      all,
      "warning",
      new RegExp(`^The PipeScaling ${world.records}/${world.serviceId} is not in the namespace`),
    );
    expectFinding(all, "error", /^The pipes of orders cannot be given their size/);
    expectFinding(all, "warning", /pipe-lost has the label .* but there is no record/);
    const double = expectFinding(
      all,
      "error",
      /pipe-double cannot be resized: it has the containers pipe, sidecar/,
    );
    expect(double.remedy).toContain("kubectl annotate deployment pipe-double");
    expectFinding(all, "note", /pipe-paused is paused by its owner/);
    expectFinding(all, "note", /pipe-a has its replicas set by the HorizontalPodAutoscaler more/);
    expectFinding(all, "error", /pipe-a is sized by the VerticalPodAutoscaler bigger too/);
  });

  it("that are suspended are noted", async () => {
    await world.patchScaling({ suspend: true });
    await world.waitForCondition("Ready", "Unknown", "Suspended");
    expectFinding(await examined(), "note", /^The pipes of orders are suspended since /);
  });
});

describe("the two processes", () => {
  const deployment = (component: "api" | "controller") => [
    "deployment",
    accountName(component),
    "-n",
    world.records,
  ];

  it("that are scaled to nothing, being rolled out, or of another version, are named", async () => {
    await kubectl(cluster, ["scale", ...deployment("api"), "--replicas", "0"]);
    const unready = { spec: { template: { metadata: { labels: { [NEVER_READY_LABEL]: "true" } } } } };
    await kubectl(cluster, ["patch", ...deployment("controller"), "-p", JSON.stringify(unready)]);
    await kubectl(cluster, ["label", ...deployment("controller"), "--overwrite", `${VERSION_LABEL}=9.9.9`]);
    const all = await examinedUntil(/^The controller is being rolled out: 1 of 2 pods/);
    expectFinding(all, "note", /is being rolled out/);
    expectFinding(all, "error", /^The api is scaled to nothing/);
    expectFinding(all, "warning", /^The controller is of version 9\.9\.9, and this program of /);
  });

  it("that are not ready are named, with where to look", async () => {
    const pods = ["pods", "-n", world.records, "--selector", "app.kubernetes.io/component=controller"];
    await kubectl(cluster, ["label", ...pods, "--overwrite", `${NEVER_READY_LABEL}=true`]);
    const all = await examinedUntil(/^The controller is not ready: 0 of 2 pods/);
    expect(expectFinding(all, "error", /is not ready/).remedy).toContain("kubectl logs deployment/");
  });

  it("that lack a right are named with what does not work without it", async () => {
    await kubectl(cluster, ["delete", "rolebinding", recordsRoleName("api"), "-n", world.records]);
    const lacking = /^The account of the api, .* may not list, watch secrets in .*, so no key is known/;
    const found = expectFinding(await examinedUntil(lacking), "error", lacking);
    expect(found.remedy).toContain("helm upgrade");
  });

  it("that lack a right that they can do without are only noted, with the value that gives it", async () => {
    await kubectl(cluster, ["delete", "clusterrolebinding", nodesRoleName(world.records)]);
    const lacking =
      /^The account of the controller, .* may not list nodes in all namespaces, so a size that fits/;
    const found = expectFinding(await examinedUntil(lacking), "note", lacking);
    expect(found.remedy).toContain("rbac.nodes=true");
  });

  it("that are not there, or work by other records, are named", async () => {
    await kubectl(cluster, ["delete", ...deployment("api")]);
    expectFinding(await examined(), "error", /^The api is not installed, so nobody can ask/);
    const elsewhere = ["doctor", "--kubeconfig", cluster.kubeconfig, "--namespace", "default"];
    const all = await examined(elsewhere);
    expectFinding(
      all,
      "error",
      new RegExp(`works by the records of the namespace ${world.records}, and these`),
    );
    expectFinding(all, "note", /^There is no record in the namespace default yet\.$/);
    const nowhere = ["doctor", "--kubeconfig", cluster.kubeconfig, "--namespace", "none"];
    expectFinding(await examined(nowhere), "error", /^There is no namespace none for the records\.$/);
    await kubectl(cluster, ["delete", ...deployment("controller")]);
    expectFinding(await examined(), "note", /^No Deployment has the labels of the chart/);
  });
});

describe("the lease", () => {
  it("that nobody holds is named, with what nobody looks at meanwhile", async () => {
    await settledController();
    await stopController();
    await world.patchScaling({ suspend: false });
    const all = await examined();
    expectFinding(
      all,
      "error",
      /^No controller holds the Lease pipe-scaling-controller: the last one has ended \d+ s ago/,
    );
    expectFinding(all, "warning", /^orders: The controller has not looked at its newest change yet\.$/);
    await world.client.json({
      method: "DELETE",
      path: objectPath(PIPE_SCALINGS, world.pipes, world.serviceId),
    });
    expectFinding(await examined(), "warning", /^The service orders .* has pipes in .*, but no PipeScaling/);
  });

  it("that is not renewed any more is named with who holds it", async () => {
    await world.client.json({
      method: "PATCH",
      path: objectPath(LEASES, world.records, LEASE_NAME),
      patchType: "application/merge-patch+json",
      body: { spec: { holderIdentity: "sleeper", renewTime: "2026-01-01T00:00:00.000000Z" } },
    });
    expectFinding(
      await examined(),
      "error",
      /^The controller sleeper holds the Lease .* has renewed it \d+ d ago the last time/,
    );
  });

  it("that was never there is named", async () => {
    await world.client.json({ method: "DELETE", path: objectPath(LEASES, world.records, LEASE_NAME) });
    expectFinding(await examined(), "error", /^There is no Lease in /);
  });
});

describe("who may see little", () => {
  it("is told what was not looked at", async () => {
    await kubectl(cluster, ["create", "serviceaccount", "stranger", "-n", world.records]);
    const kubeconfig = await serviceAccountKubeconfig(cluster, world.records, "stranger");
    const all = await examined(["doctor", "--kubeconfig", kubeconfig, "--namespace", world.records]);
    expect(all.code).toBe(0);
    expect(ill(all)).toEqual([]);
    const unseen = all.findings.filter(({ message }) => message.startsWith("Not looked at: you may not "));
    expect(unseen.map(({ check }) => check)).toEqual([
      "definition",
      "installation",
      "lease",
      "records",
      "records",
    ]);
  });

  it("or nothing at all, is told why", async () => {
    const kubeconfig = await serviceAccountKubeconfig(cluster, world.records, "stranger");
    const text = readFileSync(kubeconfig, "utf8");
    writeFileSync(kubeconfig, text.replace(cluster.server, "https://127.0.0.1:1"));
    const unreached = await examined(["doctor", "--kubeconfig", kubeconfig]);
    expectFinding(unreached, "error", /^https:\/\/127\.0\.0\.1:1 cannot be reached: /);
    writeFileSync(kubeconfig, text.replace(/token: .*/, "token: none"));
    const refused = await examined(["doctor", "--kubeconfig", kubeconfig]);
    expectFinding(refused, "error", /does not accept the credentials of the kubeconfig\.$/);
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
    expectFinding(older, "warning", /is older than this program: it has no spec\.suspend\.$/);
    const newer = await define((properties) => {
      properties["color"] = { type: "string" };
    });
    expectFinding(newer, "warning", /is newer than this program, which knows no spec\.color\.$/);
    const other = await define((properties) => {
      properties["suspend"] = { type: "boolean" };
    });
    expectFinding(other, "warning", /is not that of this program/);
  });

  it("that does not serve the version, is being deleted, or is not there, is named", async () => {
    const unserved = await define((_, version) => {
      version.served = false;
    });
    expectFinding(unserved, "error", /does not serve v1beta1/);
    await define(() => undefined);
    await world.create(PIPE_SCALINGS, world.pipes, {
      apiVersion: API_VERSION,
      kind: KIND,
      metadata: { name: "stays", finalizers: ["test.pipes.clouddb.dev/stay"] },
    });
    await kubectl(cluster, ["delete", "crd", PIPE_SCALINGS_CRD, "--wait=false"]);
    expectFinding(await examined(), "error", /is being deleted, and every PipeScaling with it/);
    await kubectl(cluster, [
      "patch",
      "psc",
      "stays",
      "-n",
      world.pipes,
      "--type=merge",
      "-p",
      '{"metadata":{"finalizers":null}}',
    ]);
    await kubectl(cluster, ["wait", "--for=delete", `crd/${PIPE_SCALINGS_CRD}`, "--timeout=60s"]);
    const all = await examined();
    expect(all.code).toBe(3);
    expectFinding(
      all,
      "error",
      /^There is no CustomResourceDefinition pipescalings\.pipes\.clouddb\.dev: nothing can be resized/,
    );
  });
});

const PIPE_SCALINGS_CRD = "pipescalings.pipes.clouddb.dev";
