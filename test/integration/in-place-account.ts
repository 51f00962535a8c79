import { apply } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { mayDo } from "../chart/rights.ts";
import { accountName, inPlaceAccount } from "../support/fixtures/shipped-account.ts";
import type { TestEnvironment } from "../support/test-environment.ts";

/** Gives the controller the permissions of `rbac.inPlaceResize`, with the admission policies that restrict them. */
export async function allowResizesInPlace({
  cluster,
  client,
  records,
  pipes,
}: TestEnvironment): Promise<void> {
  await apply(cluster, await inPlaceAccount(records));
  const user = `system:serviceaccount:${records}:${accountName("controller")}`;
  const right = { verb: "patch", group: "", resource: "pods/resize" };
  await waitFor(() => mayDo(client, user, pipes, right), { what: "permission to resize pods" });
}
