import { expect, it } from "vitest";
import { apply } from "../../../../src/controller/apply/apply.ts";
import { FailedSteps } from "../../../../src/controller/apply/failed-steps.ts";
import { Validations } from "../../../../src/controller/apply/validations.ts";
import { WriteHistory } from "../../../../src/controller/apply/write-history.ts";
import { TYPE_LABEL } from "../../../../src/controller/names.ts";
import { createCaches } from "../../../../src/controller/observe/caches.ts";
import { toDeploymentView } from "../../../../src/controller/observe/deployment-view.ts";
import { TIMEOUTS } from "../../../../src/controller/timeouts.ts";
import type { KubeRequest } from "../../../../src/kube/client.ts";
import type { Deployment } from "../../../../src/kube/objects.ts";
import { FakeClock } from "../../../support/fakes/fake-clock.ts";
import { noResizes } from "../../../support/fixtures/no-resizes.ts";
import { pipeDeployment } from "../../../support/fixtures/pipe.ts";

function deployment(resourceVersion: string, type: string): Deployment {
  const made = pipeDeployment({ name: "a", namespace: "pipes", serviceId: "service", cores: 4, type });
  return { ...made, metadata: { ...made.metadata, uid: "uid", resourceVersion, generation: 1 } };
}

/** Lists this one Deployment like the API server, filtered by the label selector of the request. */
function selected(object: Deployment, { query }: KubeRequest): readonly Deployment[] {
  const selector = query?.["labelSelector"];
  const type = object.metadata.labels?.[TYPE_LABEL];
  return selector === undefined || String(selector).includes(`${TYPE_LABEL}=${type}`) ? [object] : [];
}

it("a refreshed Deployment does not return to the cache after its owner removed the pipe labels", async () => {
  const caches = createCaches();
  const clock = new FakeClock();
  const pipe = toDeploymentView(deployment("1", "database"));
  caches.pipes.apply(pipe);
  const json = async <T>(request: KubeRequest): Promise<T> => {
    // The watch delivers the new label before the response, which contains a later status.
    caches.pipes.remove(toDeploymentView(deployment("2", "files")));
    return JSON.parse(JSON.stringify({ items: selected(deployment("3", "files"), request) }));
  };
  await apply(
    {
      ...{ caches, clock, client: { json }, nodes: { list: () => Promise.resolve([]) } },
      ...{ writes: new WriteHistory(caches.pipes), validations: new Validations(caches.pipes) },
      resizes: noResizes(caches.pipes, clock),
      failedSteps: new FailedSteps(caches.pipes, clock, TIMEOUTS),
      assertMayWrite: () => undefined,
    },
    { type: "refresh", pipe },
  );
  expect([...caches.pipes.values()]).toEqual([]);
});
