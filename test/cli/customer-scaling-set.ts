import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SECRETS } from "../../src/kube/paths.ts";
import { type SpawnedApi, spawnApi } from "../api/spawned-api.ts";
import { keyRecord } from "../support/fixtures/records.ts";
import { resourcesOf, TestEnvironment } from "../support/test-environment.ts";
import { createHeldPipe, release, waitForPipeScalings } from "./held-pipes.ts";
import { accessTo, type EnvironmentVariables, run, start, textOf, type Way } from "./run-command.ts";

/** Runs the program with the API, the controller and the pipes of a service. */
export function describeScalingSet(way: Way): void {
  let environment: TestEnvironment;
  let api: SpawnedApi;
  let env: EnvironmentVariables;

  beforeEach(async () => {
    environment = await TestEnvironment.create("basic");
    await waitForPipeScalings(environment);
    const { organizationId, records, cluster } = environment;
    const { record, ...key } = keyRecord({ organizationId });
    await environment.create(SECRETS, records, record);
    for (const name of ["pipe-a", "pipe-b"]) await createHeldPipe(environment, name);
    await environment.startController();
    api = await spawnApi({ records, kubeconfig: cluster.kubeconfig });
    env = accessTo(api.url, key);
    for (const name of ["pipe-a", "pipe-b"]) await release(environment, name);
    const isScaled = async () => (await run("in a pipe", `scaling get ${environment.serviceId}`, env)).text;
    await waitFor(async () => /STATE +scaled/.test(await isScaled()), {
      what: "the pipes to run their size",
    });
  });

  afterEach(async () => {
    await api?.stop();
    await environment?.end();
  });

  describe(way, () => {
    it("scaling set --watch requests a size, and ends when every pipe runs it", async () => {
      const running = start(way, ["scaling", "set", environment.serviceId, "--cores", "4", "--watch"], env);
      await release(environment, "pipe-a");
      await running.waitFor("1/2 pipes");
      await release(environment, "pipe-b");
      expect(await running.exitCode).toBe(0);
      expect(textOf(running)).toContain("Every pipe runs the size.");
      for (const name of ["pipe-a", "pipe-b"]) {
        expect(resourcesOf(await environment.pipe(name))).toBe("4 16Gi 16Gi");
      }
      // A second request for the same size changes nothing, and completes immediately.
      const again = await run(way, `scaling set ${environment.serviceId} --cores 4 --watch`, env);
      expect(again.code).toBe(0);
    });

    it("scaling set fails for a suspended service", async () => {
      await environment.patchScaling({ suspend: true });
      await environment.waitForCondition("Ready", "Unknown", "Suspended");
      const got = await waitFor(
        async () => {
          const ended = await run(way, `scaling get ${environment.serviceId} --watch`, env);
          return ended.code === 3 && ended;
        },
        { what: "the API to report the suspension" },
      );
      expect(got.text).toContain("Scaling of this service is suspended");
      const set = await run(way, `scaling set ${environment.serviceId} --cores 4 --watch`, env);
      expect(set.code).toBe(1);
      expect(set.text).toContain("status 409");
    });
  });
}
