import { apply, kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { expositionOf } from "../chart/exposition.ts";
import { mayDo } from "../chart/rights.ts";
import { accountName } from "../support/fixtures/shipped-account.ts";
import { restrictToNamespaces, roleBindingIn } from "../support/restrict-to-namespaces.ts";
import { clientOfText, type RunningApi } from "./environment.ts";
import { setUpEnvironment, setUpTenant } from "./fixtures.ts";

const environment = setUpEnvironment("namespaces");
const { path, developer } = setUpTenant(environment);
const { authorization } = developer;

/** A namespace that the tenant does not use. */
let other: string;
beforeAll(async () => {
  other = `${environment.pipes}-other`;
  await restrictToNamespaces("api", environment, [environment.pipes]);
});
afterAll(async () => {
  await kubectl(environment.cluster, ["delete", "namespace", other, "--wait=false", "--ignore-not-found"]);
});

async function isSynced({ opsUrl }: RunningApi, namespace: string): Promise<boolean> {
  const { samples } = expositionOf((await clientOfText(opsUrl)("/metrics")).text);
  const of = samples.find(
    ({ name, labels }) => name === "pipe_scaling_cache_synced" && labels.get("namespace") === namespace,
  );
  return of?.value === "1";
}

/** Waits until the API server knows that the account of the API may not read the namespace. */
async function waitForRefusal(): Promise<void> {
  const { admin, records } = environment;
  const user = `system:serviceaccount:${records}:${accountName("api")}`;
  const right = { verb: "list", group: "pipes.clouddb.dev", resource: "pipescalings" };
  await waitFor(async () => !(await mayDo(admin, user, other, right)), { what: "the refusal" });
}

it("an API with permissions per namespace serves its other tenants before a namespace exists and after it is deleted", async () => {
  const pipeNamespaces = [environment.pipes, other];
  const status = async (of: RunningApi) => (await of.send({ path, authorization })).status;
  await waitForRefusal();
  const first = await environment.startReadyApi({ pipeNamespaces });
  onTestFinished(() => first.stop());
  expect(await status(first)).toBe(200);
  expect([await isSynced(first, environment.pipes), await isSynced(first, other)]).toEqual([true, false]);

  await apply(environment.cluster, [{ apiVersion: "v1", kind: "Namespace", metadata: { name: other } }]);
  await apply(environment.cluster, [roleBindingIn(other, "api", environment.records)]);
  await waitFor(() => isSynced(first, other), { what: "the API to read the new namespace" });
  const refusal = `cannot watch PipeScalings in ${other}; trying again`;
  expect(first.log.filter(({ msg }) => msg === refusal)).toHaveLength(1);

  await kubectl(environment.cluster, ["delete", "namespace", other]);
  await waitForRefusal();
  const second = await environment.startReadyApi({ pipeNamespaces });
  onTestFinished(() => second.stop());
  expect([await status(first), await status(second)]).toEqual([200, 200]);
  expect([await isSynced(second, environment.pipes), await isSynced(second, other)]).toEqual([true, false]);
});
