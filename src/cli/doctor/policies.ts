import type {
  V1ValidatingAdmissionPolicyBindingSpec,
  V1ValidatingAdmissionPolicySpec,
} from "@kubernetes/client-node";
import type { KubeObject } from "../../kube/objects.ts";
import type { Cluster } from "./cluster.ts";
import type { Component, Installation } from "./installation.ts";
import { mayResizePods } from "./permissions.ts";
import { error, note, ok, type Result, warning } from "./result.ts";

interface Policy extends KubeObject {
  readonly spec: V1ValidatingAdmissionPolicySpec;
}

interface Binding extends KubeObject {
  readonly spec: V1ValidatingAdmissionPolicyBindingSpec;
}

/** The ends of the names of policies, after the name of the process. A binding has the name of its policy. */
export const POLICIES: Readonly<Record<Component, readonly string[]>> = {
  api: ["", "-pipescalings"],
  controller: ["", "-pipescalings", "-leases", "-events"],
};

/** Only with rbac.inPlaceResize. */
export const IN_PLACE_POLICIES = ["-resize", "-replicasets", "-replicasets-delete"];

/** Field managers that install manifests. Each other one that owns a part of a policy has changed it. */
const INSTALLERS = [
  ...["helm", "kubectl", "kubectl-client-side-apply", "kubectl-create"],
  ...["argocd-controller", "helm-controller", "kustomize-controller"],
];

/** An upgrade keeps what another writer has added, even with --force-conflicts. */
function restore(kind: string, name: string): string {
  return `Replace it: kubectl delete ${kind.toLowerCase()} ${name}, then helm upgrade.`;
}

/** Checks that the admission policies of the chart and their bindings exist and are those of the chart. */
export async function checkPolicies(cluster: Cluster): Promise<Result[]> {
  const installations = await cluster.installations();
  const ours = installations.filter(({ records }) => records === cluster.options.records);
  if (ours.length === 0) return [];
  const policies = await byName<Policy>(cluster, "validatingadmissionpolicies");
  const bindings = await byName<Binding>(cluster, "validatingadmissionpolicybindings");
  const exists = (name: string) => policies.has(name) || bindings.has(name);
  const names = (await Promise.all(ours.map((each) => expectedNames(cluster, each, exists)))).flat();
  if (!names.some(exists) && !ours.some(({ hasPolicies }) => hasPolicies)) {
    return [
      note(
        "The admission policies of the chart are not installed, so permissions are the only limit of a stolen token.",
        "Unless this is intended: helm upgrade with admissionPolicies.create=true.",
      ),
    ];
  }
  const problems = names.flatMap((name) => [
    ...judgePolicy(name, policies.get(name)),
    ...judgeBinding(name, bindings.get(name)),
  ]);
  return problems.length === 0 ? [ok(`The admission policies are in force: ${names.length}.`)] : problems;
}

async function byName<T extends KubeObject>(cluster: Cluster, plural: string): Promise<Map<string, T>> {
  const objects = await cluster.list<T>({
    resource: { apiVersion: "admissionregistration.k8s.io/v1", plural },
  });
  return new Map(objects.map((each) => [each.metadata.name, each]));
}

async function expectedNames(
  cluster: Cluster,
  installation: Installation,
  exists: (name: string) => boolean,
): Promise<string[]> {
  const { component, name, namespace } = installation;
  const named = (ends: readonly string[]) => ends.map((end) => `${name}${end}.${namespace}`);
  const always = named(POLICIES[component]);
  if (component === "api") return always;
  const inPlace = named(IN_PLACE_POLICIES);
  const isExpected = inPlace.some(exists) || (await mayResizePods(cluster, installation));
  return isExpected ? [...always, ...inPlace] : always;
}

function judgePolicy(name: string, policy: Policy | undefined): Result[] {
  const kind = "ValidatingAdmissionPolicy";
  if (!policy) return [missing(kind, name)];
  const { failurePolicy = "Fail" } = policy.spec;
  if (failurePolicy === "Fail") return changedBy(kind, policy);
  return [
    error(
      `The ${kind} ${name} was changed: it has the failurePolicy ${failurePolicy} instead of Fail.`,
      restore(kind, name),
    ),
  ];
}

function judgeBinding(name: string, binding: Binding | undefined): Result[] {
  const kind = "ValidatingAdmissionPolicyBinding";
  if (!binding) return [missing(kind, name)];
  const { policyName, validationActions = [], paramRef, matchResources } = binding.spec;
  const problem =
    (policyName !== name && `binds the policy ${policyName}`) ||
    (!validationActions.includes("Deny") && `has the actions ${validationActions.join(", ")} without Deny`) ||
    (matchResources !== undefined && "is restricted to some requests") ||
    (paramRef !== undefined && "has parameters");
  if (!problem) return changedBy(kind, binding);
  return [
    error(
      `The ${kind} ${name} was changed: it ${problem}, so a stolen token can do more than resize pipes.`,
      restore(kind, name),
    ),
  ];
}

function missing(kind: string, name: string): Result {
  return error(
    `The ${kind} ${name} of the chart does not exist, so a stolen token can do more than resize pipes.`,
    "helm upgrade creates it.",
  );
}

function changedBy(kind: string, { metadata: { name, managedFields = [] } }: KubeObject): Result[] {
  const owners = managedFields.filter(({ fieldsV1 }) => fieldsV1?.["f:spec"] !== undefined);
  const names = [...new Set(owners.map(({ manager = "" }) => manager))];
  const editors = names.filter((each) => !INSTALLERS.includes(each));
  // An unknown installer owns all of it.
  if (names.length < 2 || editors.length === 0) return [];
  return [warning(`The ${kind} ${name} was changed by ${editors.join(", ")}.`, restore(kind, name))];
}
