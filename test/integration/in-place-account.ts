import { apply } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { mayDo } from "../chart/rights.ts";
import { accountName, restrictedController } from "../support/fixtures/shipped-account.ts";
import type { TestEnvironment } from "../support/test-environment.ts";

/** Installs the admission policies that restrict the controller. Resolves when it may resize pods. */
export async function restrictController({
  cluster,
  client,
  records,
  pipes,
}: TestEnvironment): Promise<void> {
  await apply(cluster, restrictedController(records));
  const user = `system:serviceaccount:${records}:${accountName("controller")}`;
  const right = { verb: "patch", group: "", resource: "pods/resize" };
  await waitFor(() => mayDo(client, user, pipes, right), { what: "permission to resize pods" });
}
