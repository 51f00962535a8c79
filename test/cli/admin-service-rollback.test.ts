import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { REQUEST_ANNOTATION } from "../../src/crd/scaling-request.ts";
import { setQuota } from "../support/limits.ts";
import { runProgram } from "../support/terminal/program.ts";
import { resourcesOf, TestEnvironment } from "../support/test-environment.ts";

describe("admin service rollback", () => {
  let environment: TestEnvironment;
  beforeEach(async () => {
    environment = await TestEnvironment.create();
  });
  afterEach(() => environment.end());

  function service(command: string, ...flags: string[]) {
    const clusterFlags = ["--kubeconfig", environment.cluster.kubeconfig, "--namespace", environment.records];
    return runProgram(["admin", "service", command, environment.serviceId, ...clusterFlags, ...flags]);
  }

  async function scaleTo(cores: number | null): Promise<void> {
    await environment.requestSize(cores);
    await environment.waitForCondition("Ready", "True");
  }

  async function history(): Promise<string[]> {
    const { history = [] } = (await environment.scaling()).status ?? {};
    return history.map(({ summary, source, result }) => `${summary} ${source} ${result}`);
  }

  it("returns the pipes to the previous size, and then to the one that the pipes had at first", async () => {
    await environment.startController();
    await environment.createPipe({ name: "pipe-a", cores: 1 });
    await environment.waitForCondition("Ready", "True");
    await scaleTo(2);
    await scaleTo(4);

    const back = await service("rollback");
    expect(back).toMatchObject({ code: 0, out: expect.stringMatching(/^TO +2 cpu \/ 8 Gi$/m) });
    const scaling = await environment.waitForCondition("Ready", "True");
    expect(scaling.spec).toEqual({ replicaCpuMillicores: 2000, replicaMemoryGb: 8 });
    expect(scaling.metadata.annotations?.[REQUEST_ANNOTATION]).toBeUndefined();
    expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("2 8Gi 8Gi");
    expect(await history()).toEqual([
      "2 cpu / 8 Gi Spec Scaled",
      "4 cpu / 16 Gi Spec Scaled",
      "2 cpu / 8 Gi Spec Scaled",
      "1 cpu / 4 Gi Spec Scaled",
    ]);
    const shown = await service("show");
    expect(shown.out).toMatch(/^HISTORY\nSIZE .*\n2 cpu \/ 8 Gi +Spec +Scaled +\S+Z +\S+Z +-\n4 cpu/m);

    expect((await service("rollback", "--to", "1")).code).toBe(0);
    const smallest = await environment.waitForCondition("Ready", "True");
    expect(smallest.status?.desired).toMatchObject({ summary: "1 cpu / 4 Gi", source: "Spec" });
  });

  it("returns to the last size that every pipe ran, not to one that failed", async () => {
    await environment.startController({ rolloutTimeoutMs: 2000 });
    await environment.createPipe({ name: "pipe-a", cores: 1 });
    await environment.waitForCondition("Ready", "True");
    await scaleTo(2);
    await setQuota(environment, { "requests.memory": "20Gi" });
    for (const cores of [16, 24]) {
      await environment.requestSize(cores);
      await environment.waitForCondition("Stalled", "True");
    }
    expect(await history()).toEqual([
      "24 cpu / 96 Gi Spec Failed",
      "16 cpu / 64 Gi Spec Superseded",
      "2 cpu / 8 Gi Spec Scaled",
      "1 cpu / 4 Gi Spec Scaled",
    ]);

    const planned = await service("rollback", "--dry-run");
    expect(planned).toMatchObject({ code: 0, err: "Dry run: nothing was written.\n" });
    expect((await environment.scaling()).spec?.replicaCpuMillicores).toBe(24_000);

    expect(await service("rollback")).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^FROM +24 cpu \/ 96 Gi\nTO +2 cpu \/ 8 Gi$/m),
    });
    await environment.waitForCondition("Ready", "True", "Scaled");
    expect((await history())[0]).toBe("2 cpu / 8 Gi Spec Scaled");
    expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("2 8Gi 8Gi");
  });
});
