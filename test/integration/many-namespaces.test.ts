import { apply } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, expect, it } from "vitest";
import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../src/controller/names.ts";
import { type Role, waitForDenial } from "../chart/rights.ts";
import { accountName, clusterRoleName } from "../support/fixtures/shipped-account.ts";
import { restrictToNamespaces, roleBindingIn, waitForRight } from "../support/restrict-to-namespaces.ts";
import { resourcesOf, TestEnvironment } from "../support/test-environment.ts";

const RBAC = "rbac.authorization.k8s.io/v1";

let environment: TestEnvironment;
afterEach(() => environment.end());

/** Grants the controller's permissions in a namespace, except those for pods. */
async function grantWithoutPods(namespace: string): Promise<void> {
  const { client, cluster, records } = environment;
  const path = `/apis/${RBAC}/clusterroles/${clusterRoleName("controller", records)}`;
  const { rules } = await client.json<Role>({ path });
  const name = "controller";
  const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name };
  const subjects = [{ kind: "ServiceAccount", name: accountName("controller"), namespace: records }];
  const metadata = { name, namespace };
  const others = rules.filter(({ resources }) => !resources.includes("pods"));
  await apply(cluster, [
    { apiVersion: RBAC, kind: "Role", metadata, rules: others },
    { apiVersion: RBAC, kind: "RoleBinding", metadata, roleRef, subjects },
  ]);
  await waitForRight({ cluster, records }, "controller", namespace);
}

it("a controller resizes pods in place although it may not see the pods of another namespace", async () => {
  environment = await TestEnvironment.create();
  const { cluster, pipes, serviceId } = environment;
  const other = `${pipes}-other`;
  await apply(cluster, [{ apiVersion: "v1", kind: "Namespace", metadata: { name: other } }]);
  await restrictToNamespaces("controller", environment, [pipes]);
  await grantWithoutPods(other);
  const podLabels = { [SERVICE_LABEL]: serviceId, [TYPE_LABEL]: DATABASE_TYPE };
  await environment.createPipe({ name: "pipe-a", cores: 1, podLabels });
  await environment.startController({
    pipeNamespaces: [pipes, other],
    resizeStrategy: "InPlaceOrRollout",
  });
  await environment.waitForCondition("Ready", "True");
  const refusal = `resource "pods" in API group "" in the namespace "${other}"`;
  await waitForDenial(environment.log, refusal);
  await environment.requestSize(2);
  const { status } = await environment.waitForCondition("Ready", "True");
  expect(status?.pipes).toMatchObject({ resizedBy: { "pipe-a": "InPlace" } });
});

it("a controller resizes a pipe although it may not read another namespace, and ends when it may", async () => {
  environment = await TestEnvironment.create();
  const { cluster, pipes, records } = environment;
  const other = `${pipes}-other`;
  await apply(cluster, [{ apiVersion: "v1", kind: "Namespace", metadata: { name: other } }]);
  await restrictToNamespaces("controller", environment, [pipes]);
  await environment.createPipe({ name: "pipe-a", cores: 1 });
  const stop = await environment.startController(
    { pipeNamespaces: [pipes, other] },
    { timeouts: { unreadableMs: 1000 } },
  );
  await environment.waitForCondition("Ready", "True");
  await environment.requestSize(2);
  await environment.waitForCondition("Ready", "True");
  expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("2 8Gi 8Gi");
  const leftOut = environment.log.filter(({ msg }) => String(msg).startsWith("the namespace cannot be read"));
  expect(leftOut).toMatchObject([{ namespace: other }]);

  await apply(cluster, [roleBindingIn(other, "controller", records)]);
  const hasEnded = () =>
    environment.scrape().then(
      () => false,
      () => true,
    );
  await waitFor(hasEnded, { what: "the controller to end" });
  await expect(stop()).rejects.toThrow(`the namespace ${other} can be read now: restart required`);
});
