import { readFileSync } from "node:fs";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Lease } from "../../src/kube/objects.ts";
import { LEASES, objectPath } from "../../src/kube/paths.ts";
import { stepsOf } from "../e2e/tutorial.ts";
import { runCommands } from "../support/page-commands.ts";
import { TestEnvironment } from "../support/test-environment.ts";

const PAGE = readFileSync(new URL("../../docs/runbooks/PipeScalingNoLeader.md", import.meta.url), "utf8");
const LEASE = "pipe-scaling-controller";

let environment: TestEnvironment;
beforeEach(async () => {
  environment = await TestEnvironment.create();
});
afterEach(() => environment.end());

/** Returns the first command of the runbook with these words, for the namespace of this test. */
function command(words: string): string {
  const page = PAGE.replaceAll("<records namespace>", environment.records);
  const found = stepsOf(page).find(({ commands }) => commands.startsWith(words));
  if (!found) throw new Error(`the runbook has no command ${words}`);
  return found.commands;
}

it("the commands of the runbook show and delete a Lease whose holder does not exist, and a controller leads", async () => {
  const { cluster, client, records } = environment;
  const spec = {
    holderIdentity: "deleted-pod",
    leaseDurationSeconds: 3600,
    renewTime: "2026-11-26T12:00:00.000000Z",
  };
  const identity = {
    apiVersion: LEASES.apiVersion,
    kind: "Lease",
    metadata: { name: LEASE, namespace: records },
  };
  await environment.create(LEASES, records, { ...identity, spec });
  await environment.startController({ identity: "running-pod" });

  expect(await runCommands(cluster, [command("kubectl get lease")])).toContain(
    "deleted-pod  2026-11-26T12:00:00.000000Z  3600\n",
  );
  await runCommands(cluster, [command("kubectl delete lease")]);

  const lease = () => client.json<Lease>({ path: objectPath(LEASES, records, LEASE) });
  await waitFor(async () => (await lease()).spec?.holderIdentity === "running-pod", {
    what: "the controller to hold the Lease",
    // Shorter than the time after which a controller takes over such a Lease.
    timeoutMs: 20_000,
  });
});
