import { createHash } from "node:crypto";
import type { KubeObject } from "../../kube/objects.ts";
import type { Cluster } from "./cluster.ts";
import type { Component, Installation } from "./installation.ts";
import { mayInPipes } from "./permissions.ts";
import { error, note, ok, type Result } from "./result.ts";

/** A ValidatingAdmissionPolicy or its binding. */
interface PolicyObject extends KubeObject {
  readonly spec: unknown;
}

/** Suffixes in names of policies: `<Deployment><suffix>.<namespace>`. A binding has the same name as its policy. */
export const POLICIES: Readonly<Record<Component, readonly string[]>> = {
  api: ["", "-pipescalings"],
  controller: ["", "-pipescalings", "-leases", "-events"],
};

/**
 * Policies of the controller that restrict an optional permission. Those of one permission are expected if the
 * controller has it, or if one of them exists.
 */
const OPTIONAL_POLICIES = [
  { permission: ["patch", "", "pods/resize"], ends: ["-resize", "-replicasets", "-replicasets-delete"] },
  { permission: ["patch", "apps", "statefulsets"], ends: ["-statefulsets", "-pods-delete"] },
  { permission: ["patch", "", "pods"], ends: ["-pods"] },
] as const;

/** Annotation of the chart with the SHA-256 of the spec as sorted JSON. */
export const SPEC_CHECKSUM = "pipes.clouddb.dev/spec-checksum";

/** Checks that the admission policies of the chart and their bindings exist and are those of the chart. */
export async function checkPolicies(cluster: Cluster): Promise<Result[]> {
  const ours = await cluster.ownInstallations();
  if (ours.length === 0) return [];
  const policies = await byName(cluster, "validatingadmissionpolicies");
  const bindings = await byName(cluster, "validatingadmissionpolicybindings");
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
    ...judge(cluster, "ValidatingAdmissionPolicy", name, policies.get(name)),
    ...judge(cluster, "ValidatingAdmissionPolicyBinding", name, bindings.get(name)),
  ]);
  return problems.length === 0 ? [ok(`The admission policies are in force: ${names.length}.`)] : problems;
}

async function byName(cluster: Cluster, plural: string): Promise<Map<string, PolicyObject>> {
  const objects = await cluster.list<PolicyObject>({
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
  const optional = OPTIONAL_POLICIES.map(async ({ permission, ends }) => {
    const names = named(ends);
    const isExpected = names.some(exists) || (await mayInPipes(cluster, installation, permission));
    return isExpected ? names : [];
  });
  return [...always, ...(await Promise.all(optional)).flat()];
}

function judge(cluster: Cluster, kind: string, name: string, object: PolicyObject | undefined): Result[] {
  const consequence = "so a stolen token may do more than resize pipes.";
  if (!object) {
    return [
      error(`The ${kind} ${name} of the chart does not exist, ${consequence}`, "helm upgrade creates it."),
    ];
  }
  const { annotations, managedFields = [] } = object.metadata;
  if (annotations?.[SPEC_CHECKSUM] === checksumOf(object.spec)) return [];
  const writers = managedFields.flatMap(({ manager, fieldsV1 }) => (fieldsV1?.["f:spec"] ? [manager] : []));
  return [
    error(
      `The ${kind} ${name} differs from the chart, ${consequence} Field managers of its spec: ${writers.join(", ")}.`,
      // An upgrade keeps what another writer has added, even with --force-conflicts.
      `Replace it: \`${cluster.kubectl(`delete ${kind.toLowerCase()} ${name}`)}\`, then helm upgrade.`,
    ),
  ];
}

export function checksumOf(spec: unknown): string {
  return createHash("sha256")
    .update(JSON.stringify(canonical(spec)))
    .digest("hex");
}

/** With sorted keys, and without the values that the API server adds. */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([key, each]) => !isDefault(key, each));
  return Object.fromEntries(
    entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, each]) => [key, canonical(each)]),
  );
}

function isDefault(key: string, value: unknown): boolean {
  if (key === "matchPolicy") return value === "Equivalent";
  if (key === "scope") return value === "*";
  return key.endsWith("Selector") && JSON.stringify(value) === "{}";
}
