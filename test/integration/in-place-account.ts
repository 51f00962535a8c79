import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { KubeApiError } from "../../src/kube/errors.ts";
import { CONFIG_MAPS, collectionPath } from "../../src/kube/paths.ts";
import { mayDo } from "../chart/rights.ts";
import { applyAll, type Manifest, pluralOf } from "../support/apply.ts";
import { accountName, restrictedController } from "../support/fixtures/shipped-account.ts";
import type { TestEnvironment } from "../support/test-environment.ts";

const POLICIES = "admissionregistration.k8s.io/v1";

/** Installs the admission policies that restrict the controller. Resolves when they apply and it may resize pods. */
export async function restrictController(environment: TestEnvironment): Promise<void> {
  const { client, records, pipes } = environment;
  const objects = [...restrictedController(records), ...lastPolicy(records)];
  await applyAll(client, objects);
  const policies = objects.filter(({ apiVersion }) => apiVersion === POLICIES);
  // The API server compares every write with every policy.
  environment.onEnd(() =>
    Promise.all(
      policies.map(({ kind, metadata }) =>
        client.json({ method: "DELETE", path: `/apis/${POLICIES}/${pluralOf(kind)}/${metadata.name}` }),
      ),
    ),
  );
  await waitFor(() => isLastPolicyApplied(environment), { what: "the admission policies to apply" });
  const user = `system:serviceaccount:${records}:${accountName("controller")}`;
  const right = { verb: "patch", group: "", resource: "pods/resize" };
  await waitFor(() => mayDo(client, user, pipes, right), { what: "permission to resize pods" });
}

/**
 * A policy that rejects a ConfigMap of its own name in the namespace of records. A new policy applies after about a
 * second, and not before the policies that were created earlier.
 */
function lastPolicy(namespace: string): Manifest[] {
  const name = `last.${namespace}`;
  const policy = {
    apiVersion: POLICIES,
    kind: "ValidatingAdmissionPolicy",
    metadata: { name },
    spec: {
      matchConstraints: {
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
        resourceRules: [
          { apiGroups: [""], apiVersions: ["v1"], resources: ["configmaps"], operations: ["CREATE"] },
        ],
      },
      matchConditions: [{ name: "has-this-name", expression: `object.metadata.name == "${name}"` }],
      validations: [{ expression: "false" }],
    },
  };
  const binding = {
    apiVersion: POLICIES,
    kind: "ValidatingAdmissionPolicyBinding",
    metadata: { name },
    spec: { policyName: name, validationActions: ["Deny"] },
  };
  return [policy, binding];
}

async function isLastPolicyApplied({ client, records }: TestEnvironment): Promise<boolean> {
  try {
    await client.json({
      method: "POST",
      path: collectionPath(CONFIG_MAPS, records),
      query: { dryRun: "All" },
      body: { metadata: { name: `last.${records}` } },
    });
    return false;
  } catch (error) {
    if (error instanceof KubeApiError && error.code === 422) return true;
    throw error;
  }
}
