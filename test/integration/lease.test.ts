import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Lease } from "../../src/kube/objects.ts";
import { LEASES, objectPath } from "../../src/kube/paths.ts";
import { MAX_LEASE_TRANSITIONS } from "../../src/runtime/leader.ts";
import { TestEnvironment } from "../support/test-environment.ts";

const LEASE = "pipe-scaling-controller";

let environment: TestEnvironment;
beforeEach(async () => {
  environment = await TestEnvironment.create();
});
afterEach(() => environment.end());

it("takes over a Lease whose last holder wrote the largest number of transitions", async () => {
  const { client, records } = environment;
  await environment.create(LEASES, records, {
    apiVersion: LEASES.apiVersion,
    kind: "Lease",
    metadata: { name: LEASE, namespace: records },
    spec: {
      holderIdentity: "thief",
      leaseDurationSeconds: 1,
      leaseTransitions: MAX_LEASE_TRANSITIONS,
      renewTime: "2026-11-26T12:00:00.000000Z",
    },
  });
  await environment.startController({ identity: "running-pod" });

  const lease = () => client.json<Lease>({ path: objectPath(LEASES, records, LEASE) });
  await waitFor(async () => (await lease()).spec?.holderIdentity === "running-pod", {
    what: "the controller to hold the Lease",
  });
  expect((await lease()).spec?.leaseTransitions).toBe(1);
});
