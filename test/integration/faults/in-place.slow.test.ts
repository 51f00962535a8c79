import { expect } from "vitest";
import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../../src/controller/names.ts";
import { collectionPath, PODS } from "../../../src/kube/paths.ts";
import type { Pod } from "../../../src/kube/pods.ts";
import type { TestEnvironment } from "../../support/test-environment.ts";
import { restrictController } from "../in-place-account.ts";
import { it } from "./fixtures.ts";

async function podNames({ client, pipes }: TestEnvironment): Promise<string[]> {
  const path = collectionPath(PODS, pipes);
  const { items } = await client.json<{ readonly items: readonly Pod[] }>({ path });
  return items.map(({ metadata }) => metadata.name).sort();
}

it("the invariants hold while pipes are resized in place, to larger and smaller sizes and back", async ({
  environment,
  invariants,
  startPipes,
  requestSize,
}) => {
  await restrictController(environment);
  const podLabels = { [SERVICE_LABEL]: environment.serviceId, [TYPE_LABEL]: DATABASE_TYPE };
  const pipes = ["pipe-a", "pipe-b", "pipe-c"].map((name) => ({ name, replicas: 2, podLabels }));
  await startPipes(pipes, { resizeStrategy: "InPlaceOrRollout" });
  const before = await podNames(environment);
  for (const cores of [4, 2, 1]) {
    await requestSize(cores);
    await invariants.reached(cores);
  }
  await invariants.quiet(1000);
  expect(await podNames(environment)).toEqual(before);
  await invariants.end();
});
