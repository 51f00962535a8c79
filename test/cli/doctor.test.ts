import { randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { certificatePair } from "@pipe-scaling/local-cluster/certificate";
import { apply, kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { serviceAccountKubeconfig } from "@pipe-scaling/local-cluster/service-account";
import { NEVER_READY_LABEL } from "@pipe-scaling/local-cluster/stages";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import packageJson from "../../package.json" with { type: "json" };
import { DATABASE_TYPE, LEASE_NAME, SERVICE_LABEL, TYPE_LABEL } from "../../src/controller/names.ts";
import { crdManifest } from "../../src/crd/manifest.ts";
import { API_VERSION, CONTROLLER_FIELD_MANAGER, KIND, PIPE_SCALINGS } from "../../src/crd/names.ts";
import { CONFIG_MAPS, DEPLOYMENTS, LEASES, objectPath, SECRETS } from "../../src/kube/paths.ts";
import { backupConfigMap } from "../../src/records/backup.ts";
import { keyUsageConfigMap } from "../../src/records/key-usage.ts";
import { membersConfigMap } from "../../src/records/members.ts";
import { pipeDeployment } from "../support/fixtures/pipe.ts";
import { keyRecord, organizationRecord, serviceRecord } from "../support/fixtures/records.ts";
import {
  accountName,
  nodesRoleName,
  recordsRoleName,
  shippedAccount,
} from "../support/fixtures/shipped-account.ts";
import { MAIN, runProgram } from "../support/terminal/program.ts";
import { startInPty, widest } from "../support/terminal/pty.ts";
import { TestEnvironment } from "../support/test-environment.ts";
import {
  type Change,
  expectChange as expectChangeOf,
  type Report,
  remedyOf,
  report as reportOf,
} from "./doctor-report.ts";
import { waitForPipeScalings } from "./held-pipes.ts";
import { shippedDeployments } from "./shipped-deployments.ts";

/*
 * This file has its own cluster, because it deletes the CRD at the end. Each test breaks something, compares all
 * results before and after, and leaves it broken for the following tests.
 */

const VERSION_LABEL = "app.kubernetes.io/version";

let cluster: Cluster;
let environment: TestEnvironment;
let stopController: () => Promise<void>;

beforeAll(async () => {
  cluster = await startCluster();
  environment = await TestEnvironment.create("basic", cluster);
  await waitForPipeScalings(environment);
  const { cert, key } = certificatePair("api", 60 * 86_400_000);
  await apply(cluster, [
    ...shippedAccount("api", environment.records),
    ...shippedDeployments(environment.records),
    {
      apiVersion: "v1",
      kind: "Secret",
      type: "kubernetes.io/tls",
      metadata: { name: "pipe-scaling-api-tls", namespace: environment.records },
      stringData: { "tls.crt": cert, "tls.key": key },
    },
  ]);
  const inRecords = ["--namespace", environment.records];
  await kubectl(cluster, [
    ...["wait", "--for=condition=Available", "deployment", "--all", ...inRecords, "--timeout=60s"],
  ]);
  const pods = ["get", "pods", ...inRecords, "--selector", "app.kubernetes.io/component=controller"];
  const [pod = ""] = (await kubectl(cluster, [...pods, "--output", "name"])).split("\n");
  const identity = `${pod.replace("pod/", "")}-0123abcd`;
  stopController = await environment.startController({ pipeNamespaces: [], identity });
  await environment.createPipe({ name: "pipe-a", cores: 1, podLabels: podLabels() });
  await environment.waitForCondition("Ready", "True");
});
afterAll(async () => {
  await environment?.end();
  await cluster?.stop();
});

/** Labels that allow the pods to be resized in place. */
function podLabels(serviceId = environment.serviceId) {
  return { [SERVICE_LABEL]: serviceId, [TYPE_LABEL]: DATABASE_TYPE };
}

function words(...flags: string[]): string[] {
  return ["doctor", "--kubeconfig", cluster.kubeconfig, "--namespace", environment.records, ...flags];
}

function report(args = words()): Promise<Report> {
  return reportOf(args);
}

/** The results as text, with placeholders for values that differ between runs. */
function textOf({ results }: Pick<Report, "results">): string[] {
  const { records, pipes, serviceId, organizationId } = environment;
  return results.map(({ severity, message }) =>
    `${severity}: ${message}`
      .replaceAll(cluster.server, "SERVER")
      .replace(/\bKubernetes v1\.\d+\.\d+/, "Kubernetes v1.N")
      .replaceAll(records, "RECORDS")
      .replaceAll(pipes, "PIPES")
      .replaceAll(serviceId, "SERVICE")
      .replaceAll(organizationId, "ORGANIZATION")
      .replaceAll(/\b[0-9a-f]{8}-[0-9a-f-]{27}\b/g, "ID")
      .replaceAll(/\b[0-9a-f]{64}\b/g, "HASH")
      .replaceAll(/pipe-scaling-operator-controller-\w+-\w+-[0-9a-f]{8}\b/g, "ID")
      .replaceAll(/\b\d{4}-\d\d-\d\dT[\d:]+Z/g, "TIME")
      .replaceAll(/\b\d+ (?=(?:s|min|h|d) ago)/g, "N "),
  );
}

/** Runs `act`, and waits until exactly these results have been added and removed. */
function expectChange(act: () => Promise<unknown>, change: Change): Promise<Report> {
  return expectChangeOf(act, change, report, textOf);
}

const account = (component: "api" | "controller") =>
  `The account of the ${component}, system:serviceaccount:RECORDS:pipe-scaling-operator-${component},`;
const READY = {
  api: "ok: The api is ready: 2 of 2 pods of RECORDS/pipe-scaling-operator-api are ready.",
  controller:
    "ok: The controller is ready: 2 of 2 pods of RECORDS/pipe-scaling-operator-controller are ready.",
};
const REACHABLE = "ok: SERVER is reachable and runs Kubernetes v1.N.";
const SAME_CRD = "ok: The CRD of PipeScaling (v1beta1) is that of this release.";
const POLICIES_OF_CONTROLLER = "ok: The admission policies are in force: 10.";
const POLICIES = "ok: The admission policies are in force: 12.";
const TIERS = "ok: The tiers are valid: basic, enterprise, scale.";
const TLS = "ok: The TLS certificate of the API is usable; it expires in 60 d.";
const LEADER = "ok: The controller ID is the leader; it renewed its lease N s ago.";
const OF_SERVICES = "ok: Each pipe belongs to a service; pipes: 1.";
const IN_PLACE = "ok: Where resizes in place are wanted, the pod templates allow them.";
const CHANGED_API =
  "warning: The Deployment RECORDS/pipe-scaling-operator-api was changed by kubectl-set: the next helm upgrade or rollback may fail with a conflict, revert the change or keep it.";
const NONE_PAUSED = "ok: The controller has left no Deployment or StatefulSet paused.";
const HEALTHY = [
  ...[REACHABLE, SAME_CRD, READY.api, READY.controller],
  `ok: ${account("api")} has all permissions that it needs.`,
  `ok: ${account("controller")} has all permissions that it needs.`,
  ...[POLICIES, TIERS, TLS, LEADER],
  ...["ok: The records are well-formed: organizations 1, services 1.", OF_SERVICES, IN_PLACE],
  NONE_PAUSED,
];

describe("doctor with a healthy installation", () => {
  it("reports every check as ok", async () => {
    const all = await report();
    expect(textOf(all)).toEqual(HEALTHY);
    expect(all.code).toBe(0);
  });

  it("prints a table that fits the width of a terminal", async () => {
    const doctor = startInPty(process.execPath, [MAIN, ...words()], { columns: 60 });
    expect(await doctor.exitCode).toBe(0);
    const { lines } = doctor.screen();
    expect(lines.at(-1)).toBe("0 errors, 0 warnings, 0 notes.");
    expect(lines[0]).toMatch(/^ok {7}https:/);
    expect(doctor.output()).toContain("\u001b[32mok");
    expect(widest(doctor)).toBeLessThanOrEqual(60);
  });

  it("prints YAML with --output yaml", async () => {
    const { code, out, err } = await runProgram(words("--output", "yaml"));
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(/^results:\n {2}- severity: ok\n/);
  });
});

describe("the records check of doctor", () => {
  it("reports each malformed record, with the reason and the command to edit it", async () => {
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
    const { record } = keyRecord({ organizationId: environment.organizationId });
    const all = await expectChange(
      async () => {
        await add(organization);
        await add(service);
        await add({ ...members, data: { "u-1": "{}" } });
        await add({ ...backup, data: { backupPeriodInHours: "7" } });
        await add({ ...usage, data: { [id]: "never" } });
        await add(odd);
        await environment.create(SECRETS, environment.records, {
          ...record,
          stringData: { ...record.stringData, state: "on" },
        });
      },
      {
        added: [
          expect.stringMatching(
            /^error: The configmap organization-ID is malformed: createdAt: must be a date/,
          ),
          expect.stringMatching(
            /^error: The configmap service-ID is malformed: namespace: must be a namespace name/,
          ),
          expect.stringMatching(
            /^error: The configmap backup-ID is malformed: backupPeriodInHours: must be one of/,
          ),
          expect.stringMatching(/^error: The configmap key-usage-ID is malformed: ID: must be a date/),
          expect.stringMatching(/^error: The configmap members-ID is malformed: u-1: /),
          'error: The configmap odd is malformed: the label pipes.clouddb.dev/resource is "pipe", which is not a kind of record.',
          "error: The secret api-key-HASH is malformed: state: must be enabled or disabled.",
        ],
        removed: ["ok: The records are well-formed: organizations 1, services 1."],
      },
    );
    expect(all.code).toBe(3);
    const malformed = all.results.filter(({ message }) => message.includes(" is malformed: "));
    const names = [organization, service, backup, usage, members, odd].map(({ metadata }) => metadata.name);
    const where = `--namespace ${environment.records} --kubeconfig ${cluster.kubeconfig}`;
    expect(malformed.map(({ remedy }) => remedy)).toEqual([
      ...names.map((name) => `kubectl edit configmap ${name} ${where}`),
      expect.stringContaining(
        `\`kubectl edit secret ${record.metadata.name} ${where}\`, and write values as plain`,
      ),
    ]);
  });

  it("reports references to objects that do not exist", async () => {
    const { organizationId } = environment;
    const add = (record: object) => environment.create(CONFIG_MAPS, environment.records, record);
    const nowhere = `${environment.pipes}-none`;
    await expectChange(
      async () => {
        await add(serviceRecord({ name: "nowhere", organizationId, namespace: nowhere }));
        const unowned = keyRecord({ name: "unowned", organizationId: randomUUID() });
        await environment.create(SECRETS, environment.records, unowned.record);
      },
      {
        added: [
          "error: The pipes of the service nowhere (ID) belong in the namespace PIPES-none, which does not exist.",
          "warning: The API key unowned (ID) belongs to the organization ID, which has no valid record, so it cannot be used.",
        ],
      },
    );
  });
});

describe("the pipes check of doctor", () => {
  it("reports pipes that do not belong to a service", async () => {
    const unknown = randomUUID();
    const all = await expectChange(
      () =>
        environment.createPipe({
          name: "pipe-lost",
          cores: 1,
          serviceId: unknown,
          podLabels: podLabels(unknown),
        }),
      {
        added: [
          "warning: The pipe PIPES/pipe-lost has the label pipes.clouddb.dev/service=ID, but this service has no valid record, so it is not resized.",
        ],
        removed: [OF_SERVICES],
      },
    );
    expect(remedyOf(all, /pipe-lost/)).toContain("kubectl label deployment pipe-lost");
  });
});

describe("the check for paused Deployments of doctor", () => {
  const name = "abandoned";

  /** Creates a Deployment that looks as if a controller paused it two minutes ago, and its owner removed the labels. */
  async function abandon(): Promise<void> {
    const { pipes, serviceId } = environment;
    const { metadata: labeled, ...pipe } = pipeDeployment({
      name,
      namespace: pipes,
      serviceId,
      replicas: 0,
    });
    await environment.create(DEPLOYMENTS, pipes, { ...pipe, metadata: { ...labeled, labels: {} } });
    await environment.patchPipe(name, { spec: { paused: true } }, CONTROLLER_FIELD_MANAGER);
    const { metadata } = await environment.pipe(name);
    const time = new Date(Date.now() - 2 * 60_000).toISOString().replace(/\.\d+Z/, "Z");
    const managedFields = metadata.managedFields?.map((each) =>
      each.manager === CONTROLLER_FIELD_MANAGER ? { ...each, time } : each,
    );
    await environment.client.json({
      method: "PATCH",
      path: objectPath(DEPLOYMENTS, environment.pipes, name),
      patchType: "application/merge-patch+json",
      body: { metadata: { managedFields } },
    });
  }

  it("reports one without labels that no controller resumed, and the command that resumes it", async () => {
    const left =
      "error: A controller paused the Deployment PIPES/abandoned N min ago and did not resume it, so no change of its pod template is rolled out.";
    const all = await expectChange(abandon, { added: [left], removed: [NONE_PAUSED] });
    expect(all.code).toBe(3);
    const [, command = ""] = remedyOf(all, /abandoned/)?.split(": kubectl ") ?? [];
    expect(command).toContain("rollout resume");
    await expectChange(() => kubectl(cluster, command.split(" ")), { added: [NONE_PAUSED], removed: [left] });
  });
});

describe("the installation check of doctor", () => {
  const deployment = (component: "api" | "controller") => [
    "deployment",
    accountName(component),
    "-n",
    environment.records,
  ];
  const SCALED_TO_ZERO =
    "error: The api is not ready: 0 of 0 pods of RECORDS/pipe-scaling-operator-api are ready, so sizes cannot be requested over HTTP.";
  const NOT_READY =
    "error: The controller is not ready: 0 of 2 pods of RECORDS/pipe-scaling-operator-controller are ready, so nothing is resized.";
  const ROLLING =
    "warning: A rollout of the controller is in progress: RECORDS/pipe-scaling-operator-controller has 2 pods left with an earlier template, and only the newest template was checked.";
  const OTHER_VERSION = `warning: The controller is version 9.9.9, but this program is version ${packageJson.version}, so the checks might not apply.`;
  const LACKS_SECRETS = `error: ${account("api")} may not list, watch secrets in RECORDS.`;
  const LACKS_CONFIG_MAPS = `error: ${account("api")} may not get, list, watch, create, patch configmaps in RECORDS.`;
  const LACKS_NODES = `note: ${account("controller")} may not list nodes in the whole cluster.`;
  const LACKS_REVIEWS = [
    "tokenreviews (authentication.k8s.io)",
    "subjectaccessreviews (authorization.k8s.io)",
  ].map((kind) => `error: ${account("api")} may not create ${kind} in the whole cluster.`);
  const NO_API = "error: The api is not installed, so sizes cannot be requested over HTTP.";

  it("reports a process that is scaled to zero or has another version", async () => {
    await expectChange(
      async () => {
        await kubectl(cluster, ["scale", ...deployment("api"), "--replicas", "0"]);
        const version = `${VERSION_LABEL}=9.9.9`;
        await kubectl(cluster, ["label", ...deployment("controller"), "--overwrite", version]);
      },
      { added: [SCALED_TO_ZERO, OTHER_VERSION], removed: [READY.api] },
    );
  });

  it("reports an upgrade whose new pods do not start, although the earlier ones are ready", async () => {
    const labels = { [NEVER_READY_LABEL]: "true" };
    const patch = JSON.stringify({ spec: { template: { metadata: { labels } } } });
    await expectChange(() => kubectl(cluster, ["patch", ...deployment("controller"), "--patch", patch]), {
      added: [ROLLING],
      removed: [READY.controller],
    });
    await expectChange(() => kubectl(cluster, ["rollout", "undo", ...deployment("controller")]), {
      added: [READY.controller],
      removed: [ROLLING],
    });
  });

  it("reports a process that is not ready, with the command for its log", async () => {
    const pods = ["pods", "-n", environment.records, "--selector", "app.kubernetes.io/component=controller"];
    const all = await expectChange(
      () => kubectl(cluster, ["label", ...pods, "--overwrite", `${NEVER_READY_LABEL}=true`]),
      { added: [NOT_READY], removed: [READY.controller] },
    );
    expect(remedyOf(all, /is not ready/)).toContain("kubectl logs --namespace ");
  });

  it("reports missing permissions", async () => {
    const all = await expectChange(
      () => kubectl(cluster, ["delete", "rolebinding", recordsRoleName("api"), "-n", environment.records]),
      {
        added: [LACKS_SECRETS, LACKS_CONFIG_MAPS],
        removed: [`ok: ${account("api")} has all permissions that it needs.`],
      },
    );
    expect(remedyOf(all, /may not list, watch secrets/)).toContain("helm upgrade");
  });

  it("adds a note for missing optional permissions, with the chart value that grants them", async () => {
    const all = await expectChange(
      () => kubectl(cluster, ["delete", "clusterrolebinding", nodesRoleName(environment.records)]),
      { added: [LACKS_NODES], removed: [`ok: ${account("controller")} has all permissions that it needs.`] },
    );
    expect(remedyOf(all, /may not list nodes/)).toContain("rbac.nodes=true");
  });

  it("reports missing permissions for metrics authentication", async () => {
    await expectChange(
      () =>
        kubectl(cluster, [
          ...["set", "env", ...deployment("api")],
          "PIPE_SCALING_METRICS_AUTHENTICATION=true",
        ]),
      { added: [...LACKS_REVIEWS, CHANGED_API] },
    );
  });

  it("reports a process that is not installed", async () => {
    await expectChange(() => kubectl(cluster, ["delete", ...deployment("api")]), {
      added: [NO_API, POLICIES_OF_CONTROLLER],
      removed: [
        SCALED_TO_ZERO,
        LACKS_SECRETS,
        LACKS_CONFIG_MAPS,
        ...LACKS_REVIEWS,
        CHANGED_API,
        POLICIES,
        TLS,
      ],
    });
  });

  it("reports an installation that uses the records of another namespace", async () => {
    const inNamespace = (name: string) => ["doctor", "--kubeconfig", cluster.kubeconfig, "--namespace", name];
    const without = (name: string, ...problems: string[]) => [
      `error: An installation uses the records in the namespace RECORDS, not those in ${name}.`,
      `error: The Lease pipe-scaling-controller in ${name} does not exist, so no controller is running for these records and nothing is resized.`,
      ...problems,
      ...["a", "lost"].map(
        (pipe) =>
          `warning: The pipe PIPES/pipe-${pipe} has the label pipes.clouddb.dev/service=${pipe === "lost" ? "ID" : "SERVICE"}, but this service has no valid record, so it is not resized.`,
      ),
      `note: The namespace ${name} has no organization yet.`,
      ...[REACHABLE, SAME_CRD, NONE_PAUSED],
    ];
    expect(textOf(await report(inNamespace("default"))).toSorted()).toEqual(without("default").toSorted());
    expect(textOf(await report(inNamespace("none"))).toSorted()).toEqual(
      without("none", "error: The namespace none of the records does not exist.").toSorted(),
    );
  });

  it("adds a note if it finds no installation with the chart's labels", async () => {
    await expectChange(() => kubectl(cluster, ["delete", ...deployment("controller")]), {
      added: [
        "note: No Deployment has the chart's labels (app.kubernetes.io/part-of=pipe-scaling-operator), so pods and permissions were not checked.",
      ],
      removed: [NO_API, NOT_READY, OTHER_VERSION, LACKS_NODES, POLICIES_OF_CONTROLLER, TIERS, IN_PLACE],
    });
  });
});

describe("the Lease check of doctor", () => {
  const lost = (lease: string) =>
    `error: The Lease pipe-scaling-controller in RECORDS ${lease}, so no controller is running for these records and nothing is resized.`;
  const RELEASED = lost("has no holder");
  const EXPIRED = lost("was last renewed N d ago according to the clock of the API server");

  it("reports that no controller holds the Lease", async () => {
    await expectChange(stopController, { added: [RELEASED], removed: [LEADER] });
  });

  it("reports that the holder no longer renews the Lease", async () => {
    const stale = {
      method: "PATCH",
      path: objectPath(LEASES, environment.records, LEASE_NAME),
      patchType: "application/merge-patch+json",
      body: { spec: { holderIdentity: "sleeper", renewTime: "2026-01-01T00:00:00.000000Z" } },
    } as const;
    await expectChange(() => environment.client.json(stale), { added: [EXPIRED], removed: [RELEASED] });
  });

  it("reports that the Lease does not exist", async () => {
    const path = objectPath(LEASES, environment.records, LEASE_NAME);
    await expectChange(() => environment.client.json({ method: "DELETE", path }), {
      added: [lost("does not exist")],
      removed: [EXPIRED],
    });
  });
});

describe("doctor with few permissions", () => {
  it("adds a note for each check that it could not perform", async () => {
    await kubectl(cluster, ["create", "serviceaccount", "stranger", "-n", environment.records]);
    const kubeconfig = await serviceAccountKubeconfig(cluster, environment.records, "stranger");
    const all = await report(["doctor", "--kubeconfig", kubeconfig, "--namespace", environment.records]);
    expect(all.code).toBe(0);
    expect(textOf(all)).toEqual([
      ...[
        "customresourcedefinitions.apiextensions.k8s.io",
        "deployments.apps",
        "leases.coordination.k8s.io",
        "configmaps",
        "secrets",
        "namespaces",
        ...[
          "statefulsets.apps",
          "daemonsets.apps",
          "replicasets.apps",
          "jobs.batch",
          "cronjobs.batch",
          "pods",
          "rollouts.argoproj.io",
        ],
        "pipescalings.pipes.clouddb.dev",
      ].map((kind) =>
        expect.stringMatching(
          new RegExp(`^note: Not checked because a permission is missing: ${kind} .*is forbidden`),
        ),
      ),
      REACHABLE,
    ]);
  });

  it("reports why it cannot check anything", async () => {
    const kubeconfig = await serviceAccountKubeconfig(cluster, environment.records, "stranger");
    const text = readFileSync(kubeconfig, "utf8");
    writeFileSync(kubeconfig, text.replace(cluster.server, "https://127.0.0.1:1"));
    const unreached = await report(["doctor", "--kubeconfig", kubeconfig]);
    expect(textOf(unreached)).toEqual([
      expect.stringMatching(/^error: https:\/\/127\.0\.0\.1:1 cannot be reached: /),
    ]);
    writeFileSync(kubeconfig, text.replace(/token: .*/, "token: none"));
    const refused = await report(["doctor", "--kubeconfig", kubeconfig]);
    expect(textOf(refused)).toEqual(["error: SERVER does not accept the credentials of the kubeconfig."]);
    expect([unreached.code, refused.code]).toEqual([3, 3]);
    const { code, err } = await runProgram(["doctor", "--kubeconfig", `${kubeconfig}.none`]);
    expect(code).toBe(1);
    expect(err).toContain("does not exist");
  });
});

describe("the CRD check of doctor", () => {
  type Manifest = {
    spec: {
      versions: {
        served: boolean;
        schema: { openAPIV3Schema: { properties: Record<string, { properties: Record<string, object> }> } };
      }[];
    };
  };
  type Version = Manifest["spec"]["versions"][0];

  async function installCrd(change: (properties: Record<string, object>, version: Version) => void) {
    const manifest: Manifest = JSON.parse(JSON.stringify(crdManifest()));
    const [version] = manifest.spec.versions;
    const properties = version?.schema.openAPIV3Schema.properties["spec"]?.properties;
    if (!version || !properties) throw new Error("the CRD has a version with a spec");
    change(properties, version);
    await kubectl(cluster, ["replace", "-f", "-"], { input: JSON.stringify(manifest) });
  }

  const OTHER = expect.stringMatching(
    /^warning: The CRD of PipeScaling \(v1beta1\) in the cluster differs from that of this release/,
  );
  const UNSERVED = expect.stringMatching(/^error: The CustomResourceDefinition \S+ does not serve v1beta1/);
  const DELETED = expect.stringMatching(
    /^error: The CustomResourceDefinition \S+ is being deleted with every PipeScaling/,
  );
  const ABSENT = expect.stringMatching(
    /^error: There is no CustomResourceDefinition pipescalings\.pipes\.clouddb\.dev: nothing is resized/,
  );
  it("reports a CRD that differs from the one in this program", async () => {
    const older = () => installCrd((properties) => delete properties["suspend"]);
    await expectChange(older, { added: [OTHER], removed: [SAME_CRD] });
  });

  it("reports a CRD that does not serve the version", async () => {
    const unserved = () =>
      installCrd((_, version) => {
        version.served = false;
      });
    await expectChange(unserved, { added: [UNSERVED], removed: [OTHER] });
    await expectChange(() => installCrd(() => undefined), {
      added: [SAME_CRD],
      removed: [UNSERVED],
    });
  });

  it("reports a CRD that is being deleted, and then that it does not exist", async () => {
    await expectChange(
      async () => {
        await environment.create(PIPE_SCALINGS, environment.pipes, {
          apiVersion: API_VERSION,
          kind: KIND,
          metadata: { name: "stays", finalizers: ["test.pipes.clouddb.dev/stay"] },
        });
        await kubectl(cluster, ["delete", "crd", PIPE_SCALINGS_CRD, "--wait=false"]);
      },
      { added: [DELETED], removed: [SAME_CRD] },
    );
    const all = await expectChange(
      async () => {
        const patch = '{"metadata":{"finalizers":null}}';
        await kubectl(cluster, [
          "patch",
          "psc",
          "stays",
          "-n",
          environment.pipes,
          "--type=merge",
          "-p",
          patch,
        ]);
        await kubectl(cluster, ["wait", "--for=delete", `crd/${PIPE_SCALINGS_CRD}`, "--timeout=60s"]);
      },
      { added: [ABSENT], removed: [DELETED] },
    );
    expect(all.code).toBe(3);
  });
});

const PIPE_SCALINGS_CRD = "pipescalings.pipes.clouddb.dev";
