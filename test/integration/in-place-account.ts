import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { mayDo } from "../chart/rights.ts";
import { applyAll, pluralOf } from "../support/apply.ts";
import { accountName, restrictedController } from "../support/fixtures/shipped-account.ts";
import type { TestEnvironment } from "../support/test-environment.ts";

const POLICIES = "admissionregistration.k8s.io/v1";

/** Installs the admission policies that restrict the controller. Resolves when it may resize pods. */
export async function restrictController(environment: TestEnvironment): Promise<void> {
  const { client, records, pipes } = environment;
  const objects = restrictedController(records);
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
  const user = `system:serviceaccount:${records}:${accountName("controller")}`;
  const right = { verb: "patch", group: "", resource: "pods/resize" };
  await waitFor(() => mayDo(client, user, pipes, right), { what: "permission to resize pods" });
}
