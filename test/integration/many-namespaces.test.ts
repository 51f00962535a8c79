import { apply, kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, expect, it } from "vitest";
import { accountName, clusterRoleName } from "../support/fixtures/shipped-account.ts";
import { resourcesOf, World } from "../support/test-environment.ts";

const KINDS = ["deployments", "horizontalpodautoscalers", "pipescalings", "pods"];

let world: World;
afterEach(() => world.end());

/** The world's namespace of pipes and 39 empty ones. */
async function createNamespaces(): Promise<readonly string[]> {
  const others = Array.from({ length: 39 }, (_, index) => `${world.pipes}-${index}`);
  await apply(
    world.cluster,
    others.map((name) => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } })),
  );
  return [world.pipes, ...others];
}

/** Replaces the controller's permissions in all namespaces by the same ones in these. */
async function restrictTo(namespaces: readonly string[]): Promise<void> {
  const role = clusterRoleName("controller", world.records);
  await kubectl(world.cluster, ["delete", "clusterrolebinding", role]);
  await apply(
    world.cluster,
    namespaces.map((namespace) => ({
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "RoleBinding",
      metadata: { name: "controller", namespace },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: role },
      subjects: [{ kind: "ServiceAccount", name: accountName("controller"), namespace: world.records }],
    })),
  );
}

/** Number of watches that the API server has accepted, by kind. */
async function acceptedWatches(): Promise<Readonly<Record<string, number>>> {
  const lines = (await world.scrape()).matchAll(
    /^pipe_scaling_cluster_request_duration_seconds_count\{verb="watch",resource="([^"]+)",code="200"\} (\d+)$/gm,
  );
  return Object.fromEntries([...lines].map(([, resource = "", count]) => [resource, Number(count)]));
}

it.each([
  ["one watch for each kind if it may watch all namespaces", false, 1],
  ["a watch for each namespace and kind if it may watch only those", true, 40],
])("a controller of 40 namespaces leads and sizes a pipe, with %s", async (_, isRestricted, watches) => {
  world = await World.create();
  const namespaces = await createNamespaces();
  if (isRestricted) await restrictTo(namespaces);
  await world.createPipe({ name: "pipe-a", cores: 1 });
  await world.startController({ pipeNamespaces: namespaces });
  await waitFor(() => world.log.some(({ msg }) => msg === "leading"), { what: "the controller to lead" });
  await world.waitForCondition("Ready", "True");
  await world.askFor(2);
  await world.waitForCondition("Ready", "True");
  expect(resourcesOf(await world.pipe("pipe-a"))).toBe("2 8Gi 8Gi");
  const accepted = await acceptedWatches();
  for (const kind of KINDS) expect(accepted, kind).toMatchObject({ [kind]: watches });
});
