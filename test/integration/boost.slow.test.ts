import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../src/controller/names.ts";
import { boostFields } from "../../src/crd/size-fields.ts";
import { sizeOfCores } from "../../src/domain/size.ts";
import { type Clock, systemClock } from "../../src/runtime/clock.ts";
import { resourcesOf, TestEnvironment } from "../support/test-environment.ts";
import { ControllerProcess, controllerKubeconfig } from "./faults/controller-process.ts";
import { restrictController } from "./in-place-account.ts";
import { podsOf, podUids } from "./pods.ts";

const IN_PLACE = { resizeStrategy: "InPlaceOrRollout" } as const;
const NAMES = ["pipe-a", "pipe-b"];
const HOUR_MS = 3_600_000;
/** The rest of the boost after the pipes have its size. */
const REST_MS = 30_000;
/** Much longer than the precision of times, and less than the rest of the boost. */
const SUSPENDED_MS = 12_000;
/** Precision of the server's `Date` header, which the controller's clock follows. */
const FEW_SECONDS_MS = 5000;

/** The clock of a machine that can be suspended: its monotonic time and its timers then stand still. */
function suspendable() {
  let suspendedMs = 0;
  const monotonic = () => systemClock.monotonic() - suspendedMs;
  const clock: Clock = {
    now: systemClock.now,
    monotonic,
    after: (delayMs, callback) => {
      const dueAt = monotonic() + delayMs;
      const wait = (): (() => void) =>
        systemClock.after(dueAt - monotonic(), () => {
          if (monotonic() >= dueAt) callback();
          else cancel = wait();
        });
      let cancel = wait();
      return () => cancel();
    },
  };
  const suspend = (ms: number) => {
    suspendedMs += ms;
  };
  return { clock, suspend };
}

describe("a boost", () => {
  let environment: TestEnvironment;
  let before: readonly string[];
  beforeEach(async () => {
    environment = await TestEnvironment.create();
    await restrictController(environment);
    const podLabels = { [SERVICE_LABEL]: environment.serviceId, [TYPE_LABEL]: DATABASE_TYPE };
    for (const name of NAMES) await environment.createPipe({ name, cores: 1, podLabels });
    const areRunning = async () => {
      const all = await podsOf(environment);
      return all.length === 2 && all.every(({ status }) => status?.containerStatuses?.[0]?.resources);
    };
    await waitFor(areRunning, { what: "the pods to run" });
    before = await podUids(environment);
  });
  afterEach(() => environment.end());

  /** Boosts the pipes to eight cores. Resolves with the end of the boost when all of them run that size. */
  async function boost(): Promise<number> {
    await environment.requestSize(2);
    await settledAt(2, "Spec");
    await boostUntil(Date.now() + HOUR_MS);
    // Only now, because on a busy machine the pipes may get the size late.
    const untilMs = Date.now() + REST_MS;
    await boostUntil(untilMs);
    expect((await environment.scaling()).status?.boost).toMatchObject({ summary: "8 cpu / 32 Gi" });
    return untilMs;
  }

  async function boostUntil(untilMs: number): Promise<void> {
    await environment.patchScaling({ boost: boostFields({ size: sizeOfCores(8), untilMs }) });
    await settledAt(8, "Boost");
  }

  /** Waits until every pod and template has the size, and the status says so. */
  async function settledAt(cores: number, source: string): Promise<void> {
    const isSettled = async () => {
      const { status, metadata } = await environment.scaling();
      const ready = status?.conditions?.find(({ type }) => type === "Ready");
      return (
        status?.observedGeneration === metadata.generation &&
        ready?.status === "True" &&
        status?.desired?.source === source &&
        status.effective?.replicaCpuMillicores === cores * 1000
      );
    };
    await waitFor(isSettled, { what: `${cores} cores, from ${source}`, timeoutMs: 120_000 });
    const amounts = { cpu: `${cores}`, memory: `${cores * 4}Gi` };
    for (const { status } of await podsOf(environment))
      expect(status?.containerStatuses).toMatchObject([
        { restartCount: 0, resources: { requests: amounts } },
      ]);
    for (const name of NAMES)
      expect(resourcesOf(await environment.pipe(name))).toBe(
        `${amounts.cpu} ${amounts.memory} ${amounts.memory}`,
      );
    expect(await podUids(environment)).toEqual(before);
  }

  it("begins and ends in place although the controller is killed before its end and starts after it", async () => {
    const kubeconfig = await controllerKubeconfig(environment);
    const start = (clockErrorMs = 0) =>
      new ControllerProcess(environment, kubeconfig, "the-same", { ...IN_PLACE, clockErrorMs });
    const first = start();
    environment.onEnd(() => first.kill());
    await environment.waitForCondition("Ready", "True");
    const untilMs = await boost();
    await first.kill();
    const { status, spec } = await waitFor(
      async () => (Date.now() > untilMs ? await environment.scaling() : undefined),
      { what: "the end of the boost", timeoutMs: 2 * REST_MS },
    );
    expect(status?.desired?.source).toBe("Boost");
    // The clock of this controller is behind: for it, the boost would not have ended.
    const next = start(-HOUR_MS);
    environment.onEnd(() => next.kill());
    await settledAt(2, "Spec");
    const after = await environment.scaling();
    expect(after.status?.boost).toBeUndefined();
    expect(after.spec).toEqual(spec);
  });

  it.each([
    ["ahead", HOUR_MS],
    ["behind", -HOUR_MS],
  ])("ends by itself and on time under a controller whose clock is an hour %s", async (_, errorMs) => {
    const clock = { ...systemClock, now: () => Date.now() + errorMs };
    await environment.startController(IN_PLACE, { clock, timeouts: { smallerMemoryMs: 500 } });
    await environment.waitForCondition("Ready", "True");
    await endsOnTime(await boost());
  });

  it("ends on time although the machine of the controller was suspended meanwhile", async () => {
    const { clock, suspend } = suspendable();
    await environment.startController(IN_PLACE, { clock, timeouts: { smallerMemoryMs: 500 } });
    await environment.waitForCondition("Ready", "True");
    const untilMs = await boost();
    suspend(SUSPENDED_MS);
    await endsOnTime(untilMs);
  });

  async function endsOnTime(untilMs: number): Promise<void> {
    await settledAt(2, "Spec");
    const { status } = await environment.scaling();
    const [latest, boosted] = status?.history ?? [];
    expect(latest).toMatchObject({ summary: "2 cpu / 8 Gi", source: "Spec", result: "Scaled" });
    expect(boosted).toMatchObject({ summary: "8 cpu / 32 Gi", source: "Boost", result: "Scaled" });
    const startedAtMs = Date.parse(latest?.startedAt ?? "");
    expect(startedAtMs).toBeGreaterThan(untilMs - FEW_SECONDS_MS);
    expect(startedAtMs).toBeLessThan(untilMs + FEW_SECONDS_MS);
  }
});
