import { describe, expect, it } from "vitest";
import { checkInstallations } from "../../../../src/cli/doctor/processes.ts";
import { clusterWith } from "./fake-reads.ts";

const LABELS = {
  "app.kubernetes.io/component": "controller",
  "app.kubernetes.io/part-of": "pipe-scaling-operator",
};

/** The results for a controller of two pods, as text. */
async function resultsFor({
  generation = 2,
  spec = {},
  status = {},
  managedFields = [] as readonly object[],
}) {
  const env = [{ name: "PIPE_SCALING_NAMESPACE", value: "records" }];
  const counts = { observedGeneration: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 2 };
  const controller = {
    metadata: { name: "controller", namespace: "system", labels: LABELS, generation, managedFields },
    spec: {
      replicas: 2,
      template: { metadata: { labels: LABELS }, spec: { containers: [{ name: "controller", env }] } },
      ...spec,
    },
    status: { ...counts, ...status },
  };
  const deployments = { metadata: {}, items: [controller] };
  const results = await checkInstallations(clusterWith({ "/apis/apps/v1/deployments": deployments }));
  return results
    .filter(({ message }) => !message.includes("The api is not installed"))
    .map(({ severity, message, remedy = "" }) => ({ text: `${severity}: ${message}`, remedy }));
}

describe("the installation check of doctor", () => {
  const READY = "ok: The controller is ready: 2 of 2 pods of system/controller are ready.";
  const LEFT =
    "system/controller has 2 pods left with an earlier template, and only the newest template was checked.";
  const IN_PROGRESS = `warning: A rollout of the controller is in progress: ${LEFT}`;
  const STUCK = `error: The rollout of the controller does not proceed: ${LEFT}`;
  const progressing = (status: string) => ({ conditions: [{ type: "Progressing", status }] });

  it.each<[string, string, Parameters<typeof resultsFor>[0]]>([
    ["all pods have the newest template", READY, {}],
    ["all pods have it, and Kubernetes says so", READY, { status: progressing("True") }],
    ["a pod more than wanted is about to end", READY, { status: { replicas: 3, updatedReplicas: 3 } }],
    ["the first new pod is starting", IN_PROGRESS, { status: { replicas: 3, updatedReplicas: 1 } }],
    ["no new pod can be created", IN_PROGRESS, { status: { updatedReplicas: 0, ...progressing("True") } }],
    ["Kubernetes has not seen the newest template", IN_PROGRESS, { generation: 3 }],
    [
      "the deadline of the rollout is over",
      STUCK,
      { status: { replicas: 3, updatedReplicas: 1, ...progressing("False") } },
    ],
  ])("says what is true if the wanted pods are ready, and %s", async (_, text, options) => {
    expect((await resultsFor(options)).map((each) => each.text)).toEqual([text]);
  });

  it("reports that too few pods are ready, even if a rollout is the cause", async () => {
    const status = { replicas: 3, updatedReplicas: 1, readyReplicas: 1, ...progressing("False") };
    expect((await resultsFor({ status })).map((each) => each.text)).toEqual([
      "warning: The controller is not ready: 1 of 2 pods of system/controller are ready.",
    ]);
  });

  it("names the commands that show why a rollout does not proceed", async () => {
    const [result] = await resultsFor({ status: { replicas: 3, updatedReplicas: 1 } });
    const selected = "--namespace system --selector app.kubernetes.io/component=controller";
    expect(result?.remedy).toBe(
      `Check again when it ends. If it does not: \`kubectl describe deployments,pods ${selected}\`, and \`kubectl logs ${selected} --prefix\``,
    );
  });

  it("reports a paused Deployment once, with the command that resumes it", async () => {
    const managedFields = [
      { manager: "helm", fieldsV1: { "f:spec": { "f:replicas": {} } } },
      { manager: "kubectl-rollout", fieldsV1: { "f:spec": { "f:paused": {} } } },
    ];
    const spec = { paused: true };
    for (const status of [{}, { updatedReplicas: 0, ...progressing("Unknown") }]) {
      expect(await resultsFor({ spec, status, managedFields })).toEqual([
        { text: READY, remedy: "" },
        {
          text: "error: The Deployment system/controller is paused, so no upgrade of it is rolled out.",
          remedy: "Resume it: kubectl rollout resume deployment controller --namespace system",
        },
      ]);
    }
  });

  it("distinguishes a change that an upgrade may keep from a field that the chart sets, too", async () => {
    const fieldsV1 = { "f:spec": { "f:replicas": {} } };
    const helm = { manager: "helm", fieldsV1 };
    const added = { manager: "kubectl-edit", fieldsV1: { "f:spec": { "f:minReadySeconds": {} } } };
    const shared = { manager: "kubectl-patch", fieldsV1 };
    const results = await resultsFor({ managedFields: [helm, added, shared] });
    expect(results.slice(1).map(({ text }) => text)).toEqual([
      "warning: The Deployment system/controller was changed by kubectl-edit: the next helm upgrade or rollback may fail with a conflict, revert the change or keep it.",
      "note: The Deployment system/controller has fields that both the chart and kubectl-patch set, to the same value.",
    ]);
    expect(results[1]?.remedy).toContain("`kubectl edit deployment controller --namespace system`");
    // Helm 3 fails with the flag.
    for (const { remedy } of results.slice(1))
      expect(remedy).toMatch(/`helm upgrade --force-conflicts` \(leave the flag out with Helm 3\)$/);
  });
});
