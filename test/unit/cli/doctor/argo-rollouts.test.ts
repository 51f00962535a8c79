import { describe, expect, it } from "vitest";
import { checkArgoRollouts } from "../../../../src/cli/doctor/argo-rollouts.ts";
import { SERVICE_LABEL, TYPE_LABEL } from "../../../../src/controller/names.ts";
import { pipeDeployment } from "../../../support/fixtures/pipe.ts";
import { clusterWith } from "./fake-reads.ts";

const LABELS = { [SERVICE_LABEL]: "service", [TYPE_LABEL]: "database" };

/** The results in a cluster with a pipe without replicas, as the template of a Rollout usually is. */
async function results(rollouts: readonly object[]) {
  const pipe = pipeDeployment({ name: "a", namespace: "pipes", serviceId: "service", replicas: 0 });
  const listOf = (items: readonly object[]) => ({ metadata: {}, items });
  const found = await checkArgoRollouts(
    clusterWith({
      "/apis/apps/v1/deployments": listOf([pipe]),
      "/apis/argoproj.io/v1alpha1/rollouts": listOf(rollouts),
    }),
  );
  return found.map(({ severity, message, remedy }) => [`${severity}: ${message}`, remedy]);
}

function rollout(labels: object, workloadRef?: object, namespace = "pipes") {
  const metadata = { name: "r", namespace, labels };
  return { metadata, spec: workloadRef ? { workloadRef } : { template: {} } };
}

function refersTo(name: string, kind = "Deployment") {
  return { apiVersion: "apps/v1", kind, name };
}

describe("the check of doctor for Argo Rollouts", () => {
  it("reports a Rollout with the labels of a pipe", async () => {
    expect(await results([rollout(LABELS)])).toEqual([
      [
        "warning: The Rollout pipes/r has the labels of a pipe, but only Deployments and StatefulSets are resized.",
        expect.stringContaining(
          "kubectl label rollouts.argoproj.io r --namespace pipes pipes.clouddb.dev/service- ",
        ),
      ],
    ]);
  });

  it("reports a Rollout with the labels of a pipe only in its pod template", async () => {
    const template = { metadata: { labels: LABELS } };
    const labeled = { ...rollout({ app: "a" }), spec: { template } };
    expect(await results([labeled])).toEqual([
      [
        "warning: Pods of the Rollout pipes/r have the labels of a pipe, but only Deployments and StatefulSets are resized.",
        "Run the pipe as a Deployment or a StatefulSet, or remove the labels from the pod template.",
      ],
    ]);
    expect(await results([{ ...rollout(LABELS), spec: { template } }])).toHaveLength(1);
    const kafka = { metadata: { labels: { ...LABELS, [TYPE_LABEL]: "kafka" } } };
    expect(await results([{ ...labeled, spec: { template: kafka } }])).toEqual([]);
  });

  it("reports a pipe that is only the pod template of a Rollout", async () => {
    expect(await results([rollout({}, refersTo("a"))])).toEqual([
      [
        expect.stringMatching(/^warning: The pipe pipes\/a is the pod template of the Rollout r: /),
        "Delete the Rollout and run the pipe as a Deployment, or remove the labels from the Deployment: kubectl label deployment a --namespace pipes pipes.clouddb.dev/service- pipes.clouddb.dev/type-",
      ],
    ]);
  });

  it.each([
    ["has no labels of a pipe", rollout({ app: "a" })],
    ["has the labels of a pipe of another type", rollout({ ...LABELS, [TYPE_LABEL]: "kafka" })],
    ["refers to a Deployment that is no pipe", rollout({}, refersTo("b"))],
    [
      "refers to a Deployment with the name of a pipe in another namespace",
      rollout({}, refersTo("a"), "other"),
    ],
    ["refers to another kind with the name of a pipe", rollout({}, refersTo("a", "PodTemplate"))],
  ])("does not report a Rollout that %s", async (_, object) => {
    expect(await results([object])).toEqual([]);
  });

  it("reports nothing in a cluster without Argo Rollouts", async () => {
    expect(await checkArgoRollouts(clusterWith({}))).toEqual([]);
  });
});
