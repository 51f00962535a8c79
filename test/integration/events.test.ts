import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { KubeObject } from "../../src/kube/objects.ts";
import { collectionPath, EVENTS } from "../../src/kube/paths.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { EventRecorder } from "../../src/runtime/event-recorder.ts";
import { TestEnvironment } from "../support/test-environment.ts";

let environment: TestEnvironment;
beforeAll(async () => {
  environment = await TestEnvironment.create();
});
afterAll(() => environment.end());

it("writes an Event with the longest note that the API server accepts, including its suffix", async () => {
  const lost: unknown[] = [];
  const recorder = new EventRecorder({
    client: environment.client,
    clock: systemClock,
    controller: "pipes.clouddb.dev/test",
    instance: "test",
    fieldManager: "test",
    assertMayWrite: () => undefined,
    onLost: (_, problem) => lost.push(problem),
  });
  recorder.record({
    regarding: { apiVersion: "v1", kind: "Namespace", namespace: environment.pipes, name: "pipe", uid: "1" },
    type: "Warning",
    reason: "Refused",
    action: "Rescale",
    note: "Nicht genügend Speicher für größere Rohre. ".repeat(50),
    suffix: ` (request ${environment.serviceId})`,
  });
  const written = await waitFor(
    async () => {
      expect(lost).toEqual([]);
      const list = await environment.client.json<{
        readonly items: (KubeObject & { readonly note?: string })[];
      }>({
        path: collectionPath(EVENTS, environment.pipes),
      });
      return list.items.find(({ note }) => note?.startsWith("Nicht"))?.note;
    },
    { what: "the Event" },
  );
  expect(Buffer.byteLength(written)).toBeGreaterThan(1020);
  expect(written.endsWith(`… (request ${environment.serviceId})`)).toBe(true);
});
