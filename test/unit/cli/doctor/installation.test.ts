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

const OF_POD = { "f:spec": { "f:template": { "f:spec": { "f:nodeSelector": {} } } } };
const OF_RESTART = { "f:spec": { "f:template": { "f:metadata": {} } } };
const OF_REPLICAS = { "f:spec": { "f:replicas": {} } };
const OF_PAUSE = { "f:spec": { "f:paused": {} } };

it.each<[readonly string[], readonly string[], readonly ManagedFields[]]>([
  [["helm"], [], []],
  [["an-installer-of-our-own"], [], []],
  [["kubectl"], [], []],
  [["kubectl", "kubectl-client-side-apply", "kubectl-replace"], [], []],
  [["kubectl"], [], [{ manager: "kubectl", subresource: "scale", fieldsV1: OF_REPLICAS }]],
  [["kubectl"], ["kubectl-set"], [{ manager: "kubectl-set", fieldsV1: OF_POD }]],
  [["an-installer-of-our-own", "kubectl-edit"], ["kubectl-edit"], []],
  [["an-installer-of-our-own", "its-next-version"], [], []],
  [["terraform-provider-helm_v2.17.0_x5", "terraform-provider-helm_v3.0.2_x5"], [], []],
  [["terraform-provider-helm_v3.0.2_x5", "node-fetch"], ["node-fetch"], []],
  [["helm", "helm3"], [], []],
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
  [["helm"], [], [{ manager: "kubectl-rollout", fieldsV1: OF_PAUSE }]],
  [["helm"], ["kubectl-set"], [{ manager: "kubectl-set", fieldsV1: OF_POD }]],
])("an installation written by %j was changed by %j", (managers, editors, others) => {
  const whole = managers.map((manager) => ({ manager, fieldsV1: { "f:spec": { [`f:${manager}`]: {} } } }));
  const { metadata, ...rest } = deployment();
  const managedFields = [...whole, ...others];
  expect(installationOf({ ...rest, metadata: { ...metadata, managedFields } })?.editors).toEqual(editors);
});

/** The field set of variables of a container. @param fields of each variable, such as `f:value` */
function ofVariables(variables: Readonly<Record<string, readonly string[]>>) {
  const items = Object.entries(variables).map(([name, fields]) => [
    `k:${JSON.stringify({ name })}`,
    Object.fromEntries(fields.map((each) => [each, {}])),
  ]);
  const container = { ".": {}, "f:env": Object.fromEntries(items) };
  const spec = { "f:containers": { 'k:{"name":"controller"}': container } };
  return { "f:spec": { "f:template": { "f:metadata": { "f:labels": {} }, "f:spec": spec } } };
}

const WHOLE = [".", "f:name", "f:value"];

it.each<[string, "editors" | "sharers", ...(readonly ManagedFields["fieldsV1"][])]>([
  [
    "the value of a variable of the chart",
    "editors",
    ofVariables({ LEVEL: [".", "f:name"], TIER: WHOLE }),
    ofVariables({ LEVEL: ["f:value"] }),
  ],
  ["another variable", "editors", ofVariables({ LEVEL: WHOLE }), ofVariables({ OTHER: WHOLE })],
  [
    "a variable of the chart, and another one",
    "editors",
    ofVariables({ LEVEL: WHOLE }),
    ofVariables({ LEVEL: WHOLE, OTHER: WHOLE }),
  ],
  [
    "a variable that the chart sets since",
    "sharers",
    ofVariables({ LEVEL: WHOLE }),
    ofVariables({ LEVEL: WHOLE }),
  ],
  [
    "variables that the chart sets since, in two writes",
    "sharers",
    ofVariables({ LEVEL: WHOLE, OTHER: WHOLE }),
    ofVariables({ LEVEL: WHOLE }),
    ofVariables({ OTHER: WHOLE }),
  ],
])("a writer who set %s is one of the %s", (_, role, chart, ...sets) => {
  const edits = sets.map((fieldsV1) => ({ manager: "kubectl-set", ...(fieldsV1 && { fieldsV1 }) }));
  const managedFields = [{ manager: "helm", ...(chart && { fieldsV1: chart }) }, ...edits];
  const { metadata, ...rest } = deployment();
  expect(installationOf({ ...rest, metadata: { ...metadata, managedFields } })).toMatchObject({
    ...{ editors: [], sharers: [] },
    [role]: ["kubectl-set"],
  });
});
