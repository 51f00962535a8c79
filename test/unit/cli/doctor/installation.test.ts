import { expect, it } from "vitest";
import { installationOf, type ProcessDeployment } from "../../../../src/cli/doctor/installation.ts";
import type { ManagedFields } from "../../../../src/kube/objects.ts";

/** The Deployment of a controller for all namespaces, with these containers beside the process. */
function deployment(...others: readonly { name: string; env: { name: string; value: string }[] }[]) {
  const labels = {
    "app.kubernetes.io/component": "controller",
    "app.kubernetes.io/part-of": "pipe-scaling-operator",
  };
  const env = [{ name: "PIPE_SCALING_NAMESPACE", value: "records" }];
  const spec = { containers: [...others, { name: "controller", env }] };
  return {
    metadata: { name: "controller", namespace: "system", uid: "1", resourceVersion: "1", labels },
    spec: { selector: {}, template: { metadata: { labels }, spec } },
  } satisfies ProcessDeployment;
}

it("an installation has the settings of its process, not those of an extra container", () => {
  const env = [
    { name: "PIPE_SCALING_NAMESPACE", value: "others" },
    { name: "PIPE_SCALING_PIPE_NAMESPACES", value: "others" },
  ];
  expect(installationOf(deployment({ name: "proxy", env }))).toEqual(installationOf(deployment()));
  expect(installationOf(deployment())).toMatchObject({ records: "records", pipeNamespaces: [] });
});

it("an installation has lists without the blanks that the process ignores", () => {
  const { spec, ...rest } = deployment();
  const env = [
    { name: "PIPE_SCALING_PIPE_NAMESPACES", value: "a-pipes, b-pipes " },
    { name: "PIPE_SCALING_TOLERATED_RESIZERS", value: "vpa , tuner" },
  ];
  const template = { ...spec.template, spec: { containers: [{ name: "controller", env }] } };
  expect(installationOf({ ...rest, spec: { ...spec, template } })).toMatchObject({
    pipeNamespaces: ["a-pipes", "b-pipes"],
    toleratedResizers: ["vpa", "tuner"],
  });
});

const OF_POD = { "f:spec": { "f:template": { "f:spec": {} } } };
const OF_RESTART = { "f:spec": { "f:template": { "f:metadata": {} } } };
const OF_REPLICAS = { "f:spec": { "f:replicas": {} } };

it.each<[readonly string[], readonly string[], readonly ManagedFields[]]>([
  [["helm"], [], []],
  [["an-installer-of-our-own"], [], []],
  [["kubectl"], [], []],
  [["kubectl", "kubectl-client-side-apply", "kubectl-replace"], [], []],
  [["kubectl"], [], [{ manager: "kubectl", subresource: "scale", fieldsV1: OF_REPLICAS }]],
  [["kubectl"], ["kubectl-set"], [{ manager: "kubectl-set", fieldsV1: OF_POD }]],
  [["helm", "kubectl-set"], ["kubectl-set"], []],
  [["helm", "kubectl"], ["kubectl"], []],
  [["helm", "kubectl-replace"], ["kubectl-replace"], []],
  [["helm", "kubectl-edit", "argocd-controller"], ["kubectl-edit"], []],
  [["helm-controller", "kubectl-create"], ["kubectl-create"], []],
  [["helm"], ["kubectl"], [{ manager: "kubectl", subresource: "scale", fieldsV1: OF_REPLICAS }]],
  [["helm"], [], [{ manager: "kube-controller-manager", subresource: "scale", fieldsV1: OF_REPLICAS }]],
  [
    ["helm"],
    [],
    [{ manager: "kube-controller-manager", subresource: "status", fieldsV1: { "f:status": {} } }],
  ],
  [["helm"], [], [{ manager: "kubectl-rollout", fieldsV1: OF_RESTART }]],
  [["helm"], ["kubectl-set"], [{ manager: "kubectl-set", fieldsV1: OF_POD }]],
])("an installation written by %j was changed by %j", (managers, editors, others) => {
  const whole = managers.map((manager) => ({ manager, fieldsV1: OF_REPLICAS }));
  const { metadata, ...rest } = deployment();
  const managedFields = [...whole, ...others];
  expect(installationOf({ ...rest, metadata: { ...metadata, managedFields } })?.editors).toEqual(editors);
});
