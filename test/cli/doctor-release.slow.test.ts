import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { certificatePair } from "@pipe-scaling/local-cluster/certificate";
import { apply, kubectl, untilEstablished } from "@pipe-scaling/local-cluster/kubectl";
import { serviceAccountKubeconfig } from "@pipe-scaling/local-cluster/service-account";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LEASE_NAME, SERVICE_LABEL, TYPE_LABEL } from "../../src/controller/names.ts";
import { runController } from "../../src/controller/process.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { accountOf, install, prepareRelease, type Release } from "../chart/accounts.ts";
import { pipeDeployment } from "../support/fixtures/pipe.ts";
import { organizationRecord, serviceRecord } from "../support/fixtures/records.ts";
import { POLICY } from "../support/fixtures/snapshot.ts";
import { TIERS } from "../support/fixtures/tiers.ts";
import { injectedContainer, mutatingPolicy } from "../support/mutating-policy.ts";
import { runProgram } from "../support/terminal/program.ts";
import { expectChange, type Report, remedyOf, report } from "./doctor-report.ts";

/*
 * This file has its own cluster, because doctor reads all namespaces. Each test breaks one thing, expects exactly its
 * results, and repairs it as the remedy says.
 */

const CRD = "pipescalings.pipes.clouddb.dev";
const CRD_FILE = new URL(`../../crds/pipes.clouddb.dev_pipescalings.yaml`, import.meta.url);
const POD_LABELS = { [SERVICE_LABEL]: randomUUID(), [TYPE_LABEL]: "database" };
const SERVICE = POD_LABELS[SERVICE_LABEL] ?? "";

let cluster: Cluster;
let release: Release;
let controller: { readonly abort: AbortController; readonly ended: Promise<void> } | undefined;

const run = (command: string, input?: string) =>
  kubectl(cluster, command.split(" "), input === undefined ? {} : { input });
const upgrade = (...args: readonly string[]) =>
  install(cluster, release, "--set", "api.tls.enabled=true", ...args);

beforeAll(async () => {
  cluster = await startCluster();
  release = await prepareRelease(cluster);
  await upgrade();
  await untilEstablished(cluster, [CRD]);
  const organization = organizationRecord({ tier: "basic" });
  const organizationId = organization.metadata.name.replace("organization-", "");
  const service = serviceRecord({ id: SERVICE, organizationId, namespace: release.pipes });
  await apply(cluster, [inRecords(organization), inRecords(service), pipe("healthy")]);
  await run(`wait --for=condition=Available deployment --all --namespace ${release.namespace} --timeout=60s`);
  await startController();
  await waitFor(() => run(`get pipescalings ${SERVICE} --namespace ${release.pipes}`), {
    what: "the controller to create the PipeScaling",
  });
  await run(`wait --for=condition=Ready pipescalings/${SERVICE} --namespace ${release.pipes} --timeout=60s`);
});
afterAll(async () => {
  await stopController();
  await cluster?.stop();
});

function inRecords(record: { readonly metadata: object }): object {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    ...record,
    metadata: { ...record.metadata, namespace: release.records },
  };
}

/** A pipe of the service whose pods can be resized in place. */
function pipe(name: string, options: { readonly namespace?: string; readonly type?: string } = {}) {
  return pipeDeployment({
    name,
    namespace: release.pipes,
    serviceId: SERVICE,
    cores: 1,
    podLabels: POD_LABELS,
    ...options,
  });
}

/** Pods of the release run no process, so the test runs it in the name of one of them. */
async function startController(): Promise<void> {
  const selector = "app.kubernetes.io/component=controller";
  const found = await run(`get pods --namespace ${release.namespace} --selector ${selector} --output name`);
  const [pod = ""] = found.split("\n");
  const account = accountOf(release, "controller");
  const kubeconfig = await serviceAccountKubeconfig(cluster, release.namespace, account);
  const abort = new AbortController();
  const ended = runController(
    {
      kubeconfig,
      namespace: release.records,
      pipeNamespaces: [release.pipes],
      tiers: TIERS,
      host: "127.0.0.1",
      opsPort: 0,
      metricsAuthentication: false,
      otlpEndpoint: undefined,
      identity: `${pod.replace("pod/", "")}-0123abcd`,
      ...POLICY,
    },
    createLogger("fatal", "controller"),
    abort.signal,
  );
  controller = { abort, ended };
  await Promise.race([ended, Promise.resolve()]);
}

async function stopController(): Promise<void> {
  controller?.abort.abort();
  await controller?.ended;
}

function read(): Promise<Report> {
  return report(["doctor", "--kubeconfig", cluster.kubeconfig, "--namespace", release.records]);
}

/** Everything but what is ok, with placeholders for names that differ between runs. */
function problemsOf({ results }: Report): string[] {
  return results
    .filter(({ severity }) => severity !== "ok")
    .map(({ severity, message }) =>
      `${severity}: ${message}`
        .replaceAll(accountOf(release, "controller").replace(/-controller$/, ""), "RELEASE")
        .replaceAll(release.name, "R")
        .replaceAll(SERVICE, "SERVICE")
        .replaceAll(/\b[0-9a-f]{8}-[0-9a-f-]{27}\b/g, "ID"),
    );
}

/** Breaks something, expects exactly these results, and expects none after `repair`. */
async function expectProblems(
  act: () => Promise<unknown>,
  problems: readonly unknown[],
  repair: (broken: Report) => Promise<unknown>,
): Promise<void> {
  const broken = await expectChange(act, { added: problems }, read, problemsOf);
  await expectChange(() => repair(broken), { removed: problems }, read, problemsOf);
  expect(problemsOf(await read())).toEqual([]);
}

/** Runs the kubectl commands of a remedy, which end with the given words. */
async function runRemedy(
  broken: Report,
  message: RegExp,
  command: RegExp,
  values: Record<string, string> = {},
) {
  const text = Object.entries(values).reduce(
    (remedy, [name, value]) => remedy.replaceAll(name, value),
    remedyOf(broken, message) ?? "",
  );
  const [found = ""] = command.exec(text) ?? [];
  expect(text, `${command}`).toMatch(command);
  await run(found.replace(/^kubectl /, ""));
}

/** Changes the data of an object in the namespace of the release. */
function patchData(object: string, data: Readonly<Record<string, string>>): Promise<string> {
  const patch = ["--type", "merge", "--patch", JSON.stringify({ data })];
  return kubectl(cluster, ["patch", ...object.split(" "), "--namespace", release.namespace, ...patch]);
}

describe("doctor with a release of the chart", () => {
  it("reports neither errors nor warnings nor notes for a healthy installation", async () => {
    const { code, results } = await read();
    expect(results.filter(({ severity }) => severity !== "ok")).toEqual([]);
    expect(code).toBe(0);
    expect(new Set(results.map(({ check }) => check))).toEqual(
      new Set([
        ...["server", "crd", "installation", "permissions", "policies", "tiers", "tls", "lease", "records"],
        ...["pipes", "in-place", "paused"],
      ]),
    );
  });

  describe("policies", () => {
    const name = () => `${accountOf(release, "controller")}.${release.namespace}`;
    const ofRelease = "RELEASE-controller.R-system";

    it.each(["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"])(
      "reports a %s that was deleted, and helm upgrade restores it",
      async (kind) => {
        await expectProblems(
          () => run(`delete ${kind} ${name()}`),
          [
            `error: The ${kind} ${ofRelease} of the chart does not exist, so a stolen token may do more than resize pipes.`,
          ],
          () => upgrade(),
        );
      },
    );

    it.each([
      [
        "a binding that only warns",
        "ValidatingAdmissionPolicyBinding",
        "kubectl-patch",
        {
          spec: { validationActions: ["Warn"] },
        },
      ],
      [
        "a policy whose rules were replaced",
        "ValidatingAdmissionPolicy",
        "kubectl-patch",
        {
          spec: { validations: [{ expression: "true" }] },
        },
      ],
      [
        "a policy changed as helm",
        "ValidatingAdmissionPolicy",
        "helm",
        {
          spec: { matchConditions: [{ name: "is-the-controller", expression: "false" }] },
        },
      ],
    ])("reports %s, and the remedy restores it", async (_, kind, manager, patch) => {
      await expectProblems(
        () =>
          run(
            `patch ${kind} ${name()} --type merge --field-manager ${manager} --patch ${JSON.stringify(patch)}`,
          ),
        [
          expect.stringMatching(
            `^error: The ${kind} ${ofRelease} differs from the chart, .*Field managers of its spec: (helm, )?${manager}\\.$`,
          ),
        ],
        async (broken) => {
          await runRemedy(broken, /differs from the chart/, /kubectl delete \S+ [^`\s]+/);
          await upgrade();
        },
      );
    });
  });

  it("reports a Deployment that was changed, and the remedy makes the next upgrade succeed", async () => {
    const name = accountOf(release, "api");
    await expectProblems(
      () =>
        run(
          `set env deployment/${name} --namespace ${release.namespace} --containers api PIPE_SCALING_LOG_LEVEL=debug`,
        ),
      [
        "warning: The Deployment R-system/RELEASE-api was changed by kubectl-set: the next helm upgrade or rollback may fail with a conflict, revert the change or keep it.",
      ],
      async (broken) => {
        expect(remedyOf(broken, /was changed by kubectl-set/)).toContain("helm upgrade --force-conflicts");
        await expect(upgrade()).rejects.toThrow(/conflict/);
        await upgrade("--force-conflicts");
      },
    );
  });

  describe("tiers", () => {
    const edit = (tiers: string) => {
      const name = accountOf(release, "controller").replace(/controller$/, "tiers");
      return patchData(`configmap ${name}`, { "tiers.yaml": tiers });
    };
    const what = "The ConfigMap R-system/RELEASE-tiers with the tiers";

    it.each([
      ["are not YAML", "basic: [", /^error: .* is not YAML without aliases: .*new pods cannot start/],
      [
        "are invalid",
        "basic: {}\n",
        /^error: .* is invalid: basic\.defaultCpuMillicores: .*new pods cannot start/,
      ],
      [
        "were edited",
        "basic: {defaultCpuMillicores: 1000, maximumCpuMillicores: 2000}\n",
        /^warning: .* differs from the values of the chart: it was edited/,
      ],
    ])("reports tiers that %s, and the remedy restores them", async (_, tiers, problem) => {
      await expectProblems(
        () => edit(tiers),
        [expect.stringMatching(problem)],
        (broken) => {
          expect(problemsOf(broken)[0]).toContain(what);
          expect(remedyOf(broken, /with the tiers/)).toContain("helm upgrade --force-conflicts");
          return upgrade("--force-conflicts");
        },
      );
    });
  });

  describe("the TLS Secret", () => {
    const secret = () => `${accountOf(release, "api")}-tls`;
    const what = "The TLS Secret R-system/RELEASE-api-tls of the API";
    const certificate = "The certificate in the TLS Secret R-system/RELEASE-api-tls of the API";
    const patch = (data: Record<string, string>) => {
      const encoded = Object.entries(data).map(([key, value]) => [key, base64(value)]);
      return patchData(`secret ${secret()}`, Object.fromEntries(encoded));
    };
    const base64 = (text: string) => Buffer.from(text).toString("base64");

    it("reports that it does not exist, and helm upgrade creates it", async () => {
      await expectProblems(
        () => run(`delete secret ${secret()} --namespace ${release.namespace}`),
        [`error: ${what} does not exist, so new pods of the API cannot start.`],
        () => upgrade(),
      );
    });

    const DAY_MS = 86_400_000;
    const past = certificatePair("past", -1000);
    const soon = certificatePair("soon", 3 * DAY_MS, 87 * DAY_MS);
    it.each([
      ["does not match its certificate", { "tls.key": soon.key }, `error: ${what} is unusable: `],
      ["is empty", { "tls.key": "" }, `error: ${what} has no tls.key, so the API cannot use it.`],
      ["expired", { "tls.crt": past.cert, "tls.key": past.key }, `error: ${certificate} expired `],
      [
        "expires soon",
        { "tls.crt": soon.cert, "tls.key": soon.key },
        `warning: ${certificate} expires in 3 d, and`,
      ],
    ])("reports that it %s, and the remedy replaces it", async (_, data, problem) => {
      await expectProblems(
        () => patch(data),
        [expect.stringContaining(problem)],
        async (broken) => {
          await runRemedy(broken, /TLS Secret/, /kubectl delete secret \S+ --namespace [^`\s]+/);
          await upgrade();
        },
      );
    });
  });

  describe("the Lease", () => {
    it("reports one that a thief of the token holds for 68 years, and the remedy removes it", async () => {
      await stopController();
      const spec = {
        holderIdentity: "thief",
        leaseDurationSeconds: 2_147_483_647,
        renewTime: "2094-01-01T00:00:00.000000Z",
      };
      const patch = `patch lease ${LEASE_NAME} --namespace ${release.records} --type merge --patch ${JSON.stringify({ spec })}`;
      const idle = problemsOf(await read());
      const broken = await expectChange(
        () => run(patch),
        {
          added: [
            `error: The Lease ${LEASE_NAME} in R-records has a duration of 24855 d, but a controller sets at most 60 s. So its holder, thief, is not a controller.`,
            expect.stringMatching(
              /^error: The holder of the Lease .*, thief, is not a pod of R-system\/RELEASE-controller/,
            ),
          ],
          removed: idle,
        },
        read,
        problemsOf,
      );
      await runRemedy(broken, /has a duration of/, /kubectl delete lease \S+ --namespace [^`\s]+/);
      await startController();
      await expect.poll(async () => problemsOf(await read()), { timeout: 60_000 }).toEqual([]);
    });
  });

  describe("labels", () => {
    const deleted = (name: string, namespace = release.pipes) =>
      run(`delete deployment ${name} --namespace ${namespace}`);

    it("reports a typo in the type of a pipe, and the remedy corrects it", async () => {
      await expectProblems(
        () => apply(cluster, [pipe("typo", { type: "databse" })]),
        [
          "warning: The Deployment R-pipes/typo has the label pipes.clouddb.dev/type=databse instead of database, so it is not a pipe and is not resized.",
        ],
        (broken) => runRemedy(broken, /R?.*typo has/, /kubectl label [^`]+/, { "<id>": SERVICE }),
      );
      await deleted("typo");
    });

    it("reports a pipe in a namespace that no controller watches", async () => {
      await expectProblems(
        () => apply(cluster, [pipe("elsewhere", { namespace: "default" })]),
        [
          "warning: The pipe default/elsewhere is in a namespace that no controller watches, so it is not resized.",
        ],
        () => deleted("elsewhere", "default"),
      );
    });

    it("reports a DaemonSet with the labels of a pipe, and the remedy removes them", async () => {
      const { spec, metadata } = pipe("everywhere");
      const { selector, template } = spec;
      const unlabeled = { ...template, metadata: { labels: selector.matchLabels } };
      const ofSet = { selector, template: unlabeled };
      const set = { apiVersion: "apps/v1", kind: "DaemonSet", metadata, spec: ofSet };
      await expectProblems(
        () => apply(cluster, [set]),
        [
          "warning: The DaemonSet R-pipes/everywhere has the labels of a pipe, but only Deployments and StatefulSets are resized.",
        ],
        (broken) => runRemedy(broken, /everywhere/, /kubectl label .*/),
      );
    });
  });

  it("reports a service without the record of its organization, and the remedy creates it", async () => {
    const organizationId = randomUUID();
    const service = serviceRecord({ name: "orphan", organizationId, namespace: release.pipes });
    await expectProblems(
      () => apply(cluster, [inRecords(service)]),
      [
        "error: The service orphan (ID) belongs to the organization ID, which has no valid record, so its pipes are not resized.",
      ],
      async (broken) => {
        const [command = ""] = /admin organization create [^`]+/.exec(remedyOf(broken, /orphan/) ?? "") ?? [];
        const words = command.replace("<name>", "Found").replace("<tier>", "basic").split(" ");
        const { code, err } = await runProgram(words);
        expect({ code, err }).toMatchObject({ code: 0 });
      },
    );
  });

  describe("pipes", () => {
    it("reports a fixed heap size in the environment of a pipe", async () => {
      const env = (value: string) =>
        run(`set env deployment healthy --namespace ${release.pipes} JAVA_TOOL_OPTIONS=${value}`);
      await expectProblems(
        () => env("-Xmx3g"),
        [
          expect.stringMatching(
            /^warning: The pipe R-pipes\/healthy sets a fixed size, -Xmx3g in JAVA_TOOL_OPTIONS: /,
          ),
        ],
        () => env("-XX:MaxRAMPercentage=75"),
      );
    });

    // Otherwise the controller repairs it at once.
    it("reports a pod that differs from its template while the service is suspended, and the remedy repairs it", async () => {
      const scaling = `pipescalings ${SERVICE} --namespace ${release.pipes}`;
      await run(`patch ${scaling} --type merge --patch {"spec":{"suspend":true}}`);
      await run(`wait --for=condition=Ready=Unknown ${scaling} --timeout=60s`);
      const selector = "--selector app=healthy --output name";
      const pods = await run(`get pods --namespace ${release.pipes} ${selector}`);
      const resources = { requests: { cpu: "2" } };
      const patch = JSON.stringify({ spec: { containers: [{ name: "pipe", resources }] } });
      await expectProblems(
        () =>
          run(
            `patch ${pods.split("\n")[0]} --subresource resize --namespace ${release.pipes} --patch ${patch}`,
          ),
        [
          expect.stringMatching(
            /^warning: The pod R-pipes\/healthy-\S+ has a cpu request of 2 instead of 1: another writer, "kubectl-patch", resized it after its pipe R-pipes\/healthy had its size/,
          ),
        ],
        async (broken) => {
          await runRemedy(broken, /healthy-/, /kubectl patch pipescalings .*/, { "'": "" });
          await run(`wait --for=condition=Ready ${scaling} --timeout=60s`);
        },
      );
    });

    it("reports containers that were injected into pods, and the remedy names the container", async () => {
      const strategy = (value: string) =>
        run(
          `patch pipescalings ${SERVICE} --namespace ${release.pipes} --type merge --patch {"spec":{"strategy":${value}}}`,
        );
      await strategy('"InPlaceOrRollout"');
      await apply(
        cluster,
        mutatingPolicy({ name: "proxies", namespace: release.pipes, ...injectedContainer("proxy") }),
      );
      const pod = `run probe --image probe --namespace ${release.pipes} --dry-run=server --output json`;
      await waitFor(async () => (await run(pod)).includes('"proxy"'), { what: "containers to be injected" });
      await expectProblems(
        () => run(`rollout restart deployment healthy --namespace ${release.pipes}`),
        [
          expect.stringMatching(
            /^warning: Pods of the pipe R-pipes\/healthy have containers that are not in its pod template \(proxy\), but no annotation/,
          ),
        ],
        (broken) => {
          const [, patch = ""] = /--patch '(.*)'/.exec(remedyOf(broken, /\(proxy\)/) ?? "") ?? [];
          return run(`patch deployment healthy --namespace ${release.pipes} --patch ${patch}`);
        },
      );
    });
  });

  describe("the CRD", () => {
    const problem = expect.stringMatching(
      /^warning: The CRD of PipeScaling \(v1beta1\) in the cluster differs/,
    );

    /** Removes a field, like a person with kubectl edit. */
    async function change(): Promise<void> {
      const crd = JSON.parse(await run(`get crd ${CRD} --output json`));
      delete crd.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.suspend;
      await run("replace --filename -", JSON.stringify(crd));
    }

    it.each<[string, RegExp, () => Promise<unknown>]>([
      ["helm upgrade", /helm upgrade --force-conflicts/, () => upgrade("--force-conflicts")],
      [
        "kubectl apply",
        /kubectl apply --server-side --force-conflicts -f crds\/\S+\.yaml/,
        () => run("apply --server-side --force-conflicts --filename -", readFileSync(CRD_FILE, "utf8")),
      ],
    ])("reports that it was changed, and %s restores it", async (_, command, restore) => {
      await expectProblems(change, [problem], async (broken) => {
        expect(remedyOf(broken, /The CRD/)).toMatch(command);
        await restore();
      });
    });
  });
});
