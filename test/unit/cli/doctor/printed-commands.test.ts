import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { COMMANDS } from "../../../../src/all-commands.ts";
import { runChecks } from "../../../../src/cli/doctor/checks.ts";
import { runProgram } from "../../../../src/cli/program.ts";
import { SERVICE_LABEL, TYPE_LABEL } from "../../../../src/controller/names.ts";
import { recordLabels } from "../../../../src/records/labels.ts";
import { startFakeHttpServer } from "../../../support/fakes/fake-http-server.ts";
import { fakeIo } from "../../../support/fakes/fake-io.ts";
import { writeKubeconfig } from "../../../support/fixtures/kubeconfig.ts";
import { pipeDeployment } from "../../../support/fixtures/pipe.ts";
import { serviceRecord } from "../../../support/fixtures/records.ts";
import { aHeldStatefulSet } from "../../../support/fixtures/stateful-set.ts";
import { clusterWith, versionOf } from "./fake-reads.ts";

const PLACE = { kubeconfig: "clusters.yaml", context: "eu" };
const FLAGS = "--kubeconfig clusters.yaml --context eu";

/** A cluster with many problems. @param records of the only installation */
function brokenCluster(records: string) {
  const listOf = (...items: readonly object[]) => ({ metadata: {}, items });
  const product = {
    "app.kubernetes.io/component": "api",
    "app.kubernetes.io/part-of": "pipe-scaling-operator",
  };
  const env = [
    { name: "PIPE_SCALING_NAMESPACE", value: records },
    { name: "PIPE_SCALING_TLS_CERT", value: "/etc/tls/tls.crt" },
  ];
  const volumeMounts = [{ name: "tls", mountPath: "/etc/tls" }];
  const volumes = [{ name: "tls", secret: { secretName: "own" } }];
  const api = {
    metadata: { name: "api", namespace: "system", labels: product },
    spec: {
      template: {
        metadata: { labels: product },
        spec: { containers: [{ name: "api", env, volumeMounts }], volumes },
      },
    },
  };
  const pipe = pipeDeployment({ name: "a", namespace: "pipes", serviceId: "unknown", cores: 1 });
  const annotations = { "pipes.clouddb.dev/containers": "pipe" };
  const withTypo = { name: "typo", namespace: "pipes", labels: { [TYPE_LABEL]: "databse" } };
  const service = serviceRecord({ organizationId: randomUUID(), namespace: "missing" });
  const ofPipe = { [SERVICE_LABEL]: "unknown", [TYPE_LABEL]: "database" };
  const key = { name: "api-key-x", labels: recordLabels("api-key", randomUUID()) };
  const responses = {
    "/version": versionOf("36"),
    "/api/v1/namespaces": listOf({
      metadata: { name: "records", deletionTimestamp: "2026-05-01T00:00:00Z" },
    }),
    "/apis/apps/v1/deployments": listOf(
      api,
      { ...pipe, metadata: { ...pipe.metadata, annotations } },
      { ...pipe, metadata: withTypo },
    ),
    "/apis/apps/v1/statefulsets": listOf(aHeldStatefulSet()),
    "/apis/apps/v1/namespaces/pipes/statefulsets": listOf(aHeldStatefulSet()),
    "/apis/batch/v1/jobs": listOf({ metadata: { name: "job", namespace: "pipes", labels: ofPipe } }),
    "/apis/argoproj.io/v1alpha1/rollouts": listOf({
      metadata: { name: "rollout", namespace: "pipes", labels: ofPipe },
      spec: {},
    }),
    "/api/v1/namespaces/records/configmaps": listOf(service),
    "/api/v1/namespaces/records/secrets": listOf({ metadata: key, data: {} }),
    "/apis/authorization.k8s.io/v1/subjectaccessreviews": { status: { allowed: true } },
  };
  return clusterWith(responses, PLACE);
}

test("each command in a remedy of doctor acts on the cluster that doctor checked", async () => {
  const results = [
    ...(await runChecks(brokenCluster("records"))),
    ...(await runChecks(brokenCluster("others"))),
  ];
  const remedies = results.flatMap(({ remedy }) => remedy ?? []);
  const commandsOf = (text: string) => text.match(/\b(kubectl|pipe-scaling) [a-z]+ /g) ?? [];
  expect(new Set(remedies.flatMap(commandsOf)).size).toBeGreaterThan(9);
  for (const remedy of remedies) {
    expect(remedy.split(FLAGS).length - 1, remedy).toBe(commandsOf(remedy).length);
    // Only a command at the end may be without backticks: otherwise, a comma or a period would be copied with it.
    const bare = remedy.replaceAll(/`[^`]*`/g, "");
    if (commandsOf(bare).length > 0) expect(bare).toMatch(new RegExp(`${FLAGS}( --namespace \\w+)?$`));
  }
  expect(remedies).toContain(`Check them with pipe-scaling doctor ${FLAGS} --namespace others`);
});

test("no check of doctor writes a command without the cluster", () => {
  const folder = new URL("../../../../src/cli/doctor/", import.meta.url);
  const checks = readdirSync(folder).filter((name) => name !== "cluster.ts");
  expect(checks.length).toBeGreaterThan(20);
  const literal = /kubectl [a-z]|\.program\b/;
  expect(checks.filter((name) => literal.test(readFileSync(new URL(name, folder), "utf8")))).toEqual([]);
});

test("the commands in the remedies of doctor have no line end in them on a narrow terminal", async () => {
  const { url } = await startFakeHttpServer(() => ({ body: { metadata: {}, items: [] } }));
  const kubeconfig = writeKubeconfig(url);
  const io = fakeIo({ output: true, columns: () => 40 });
  await runProgram(COMMANDS, ["doctor", "--kubeconfig", kubeconfig], io);
  expect(io.written.out).toContain(
    `→ pipe-scaling admin organization create --create-namespace --name <name> --tier <tier> --kubeconfig ${kubeconfig} --namespace pipe-scaling-records\n`,
  );
});
