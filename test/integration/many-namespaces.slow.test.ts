import { apply } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, expect, it } from "vitest";
import { parseClusterCalls } from "../support/cluster-calls.ts";
import { restrictToNamespaces } from "../support/restrict-to-namespaces.ts";
import { resourcesOf, TestEnvironment } from "../support/test-environment.ts";

const KINDS = ["deployments", "horizontalpodautoscalers", "pipescalings", "pods"];

let environment: TestEnvironment;
afterEach(() => environment.end());

/** The environment's namespace of pipes and 39 empty ones. */
async function createNamespaces(): Promise<readonly string[]> {
  const others = Array.from({ length: 39 }, (_, index) => `${environment.pipes}-${index}`);
  await apply(
    environment.cluster,
    others.map((name) => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } })),
  );
  return [environment.pipes, ...others];
}

/** Number of watches that the API server has accepted, by kind. */
async function acceptedWatches(): Promise<Readonly<Record<string, number>>> {
  const calls = parseClusterCalls(await environment.scrape());
  const accepted = calls.filter(({ verb, code }) => verb === "watch" && code === "200");
  return Object.fromEntries(accepted.map(({ resource, count }) => [resource, count]));
}

it.each([
  ["one watch for each kind if it may watch all namespaces", false, 1],
  ["a watch for each namespace and kind if it may watch only those", true, 40],
])("a controller of 40 namespaces leads and resizes a pipe with %s", async (_, isRestricted, watches) => {
  environment = await TestEnvironment.create();
  const namespaces = await createNamespaces();
  if (isRestricted) await restrictToNamespaces("controller", environment, namespaces);
  await environment.createPipe({ name: "pipe-a", cores: 1 });
  await environment.startController({ pipeNamespaces: namespaces });
  await waitFor(() => environment.log.some(({ msg }) => msg === "leading"), {
    what: "the controller to lead",
  });
  await environment.waitForCondition("Ready", "True");
  await environment.requestSize(2);
  await environment.waitForCondition("Ready", "True");
  expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("2 8Gi 8Gi");
  const accepted = await acceptedWatches();
  for (const kind of KINDS) expect(accepted, kind).toMatchObject({ [kind]: watches });
});
