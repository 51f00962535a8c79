import { Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { ControllerMetrics } from "../../../../src/controller/report/metrics.ts";
import type { PipeScalingStatus } from "../../../../src/crd/pipe-scaling.ts";
import { describedSize } from "../../../../src/crd/size-fields.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { FakeClock } from "../../../support/fakes/fake-clock.ts";

const CONDITION = { lastTransitionTime: "2025-12-01T00:00:00Z", reason: "", message: "" };

function aStatus(changes: PipeScalingStatus = {}): PipeScalingStatus {
  return { conditions: [{ ...CONDITION, type: "Ready", status: "True" }], ...changes };
}

function setup() {
  const registry = new Registry();
  const clock = new FakeClock();
  const metrics = new ControllerMetrics(registry, clock);
  const series = async (text: string) => {
    const lines = (await registry.metrics()).split("\n");
    return lines.filter((line) => line.startsWith(text));
  };
  return { clock, metrics, series };
}

const event = (type: "Normal" | "Warning", reason: string) => ({
  type,
  reason,
  action: "",
  note: "",
  regarding: { apiVersion: "", kind: "", namespace: "", name: "", uid: "" },
});

describe("the controller's metrics", () => {
  it("count pipes by state and services by condition, as of the last reconciliation", async () => {
    const { metrics, series } = setup();
    const stalled: PipeScalingStatus["conditions"] = [
      { ...CONDITION, type: "Ready", status: "False" },
      { ...CONDITION, type: "Stalled", status: "True" },
    ];
    metrics.passed("a", aStatus(), ["done", "waiting"]);
    metrics.passed("a", aStatus(), ["done", "rolling"]);
    metrics.passed("b", aStatus({ conditions: stalled }), ["failed"]);
    metrics.passed("c", aStatus(), ["done"]);
    metrics.passed("c", undefined, []);
    expect(await series("pipe_scaling_pipes{")).toEqual([
      'pipe_scaling_pipes{state="done"} 1',
      'pipe_scaling_pipes{state="failed"} 1',
      'pipe_scaling_pipes{state="unsizable"} 0',
      'pipe_scaling_pipes{state="retrying"} 0',
      'pipe_scaling_pipes{state="rolling"} 1',
      'pipe_scaling_pipes{state="paused"} 0',
      'pipe_scaling_pipes{state="waiting"} 0',
      'pipe_scaling_pipes{state="resized"} 0',
    ]);
    expect(await series("pipe_scaling_services{")).toEqual([
      'pipe_scaling_services{condition="Stalled"} 1',
      'pipe_scaling_services{condition="Reconciling"} 0',
      'pipe_scaling_services{condition="Ready"} 1',
      'pipe_scaling_services{condition="Suspended"} 0',
    ]);
  });

  it("report the age of the oldest rescale in progress", async () => {
    const { clock, metrics, series } = setup();
    const since = (ms: number) => ({ startedAt: new Date(clock.now() - ms).toISOString() });
    const conditions = [
      { ...CONDITION, type: "Reconciling", status: "True", reason: "Progressing" } as const,
    ];
    metrics.passed("a", aStatus({ propagation: since(60_000), conditions }), []);
    metrics.passed("b", aStatus({ propagation: since(90_000), conditions }), []);
    const name = "pipe_scaling_oldest_propagation_seconds";
    expect(await series(name)).toEqual([`${name} 90`]);
    metrics.passed("a", undefined, []);
    metrics.passed("b", undefined, []);
    expect(await series(name)).toEqual([`${name} 0`]);
  });

  it.each([
    ["a request that repeats its size does not begin it again", 4, 90],
    ["a request for another size does", 8, 60],
  ])("report the age of a rescale, and %s", async (_, cores, seconds) => {
    const { clock, metrics, series } = setup();
    const ago = (ms: number) => new Date(clock.now() - ms).toISOString();
    const entry = { ...describedSize(sizeOfCores(4)), source: "Spec", result: "Progressing" } as const;
    const status = aStatus({
      desired: { ...describedSize(sizeOfCores(cores)), source: "Spec" },
      history: [{ ...entry, startedAt: ago(90_000) }],
      propagation: { requestId: "request-2", startedAt: ago(60_000) },
      conditions: [{ ...CONDITION, type: "Reconciling", status: "True", reason: "Progressing" }],
    });
    metrics.passed("a", status, []);
    const name = "pipe_scaling_oldest_propagation_seconds";
    expect(await series(name)).toEqual([`${name} ${seconds}`]);
  });

  it.each([
    ["since the service was last Ready", 3e6, 90_000],
    ["since its start if the service was not Ready before", 60_000, 3e6],
  ])("report the age of a rescale that was complete before, %s", async (_, startedMs, unreadyMs) => {
    const { clock, metrics, series } = setup();
    const ago = (ms: number) => new Date(clock.now() - ms).toISOString();
    const propagation = { startedAt: ago(startedMs), completedAt: ago(startedMs / 2) };
    const since = { lastTransitionTime: ago(unreadyMs), reason: "WriteFailed", message: "" };
    const reconciling = { ...since, type: "Reconciling", status: "True" } as const;
    const conditions = [reconciling, { ...since, type: "Ready", status: "False" } as const];
    metrics.passed("a", aStatus({ propagation, conditions }), []);
    const name = "pipe_scaling_oldest_propagation_seconds";
    expect(await series(name)).toEqual([`${name} ${Math.min(startedMs, unreadyMs) / 1000}`]);
    metrics.passed("a", aStatus({ propagation }), []);
    expect(await series(name)).toEqual([`${name} 0`]);
  });

  it.each([
    ["its pipes never ran the size", undefined],
    ["its pipes ran the size before", 250_000_000],
  ])("begin the age of a rescale after a stall, also in a new process, if %s", async (_, completedMs) => {
    const { clock, metrics, series } = setup();
    const ago = (ms: number) => new Date(clock.now() - ms).toISOString();
    const completed = completedMs === undefined ? {} : { completedAt: ago(completedMs) };
    const propagation = { startedAt: ago(259_200_000), ...completed };
    const condition = (type: string, status: "True" | "False", ms: number) =>
      ({ type, status, lastTransitionTime: ago(ms), reason: "Progressing", message: "" }) as const;
    const conditions = [condition("Ready", "False", 240_000_000), condition("Reconciling", "True", 60_000)];
    metrics.passed("a", aStatus({ propagation, conditions }), []);
    const name = "pipe_scaling_oldest_propagation_seconds";
    expect(await series(name)).toEqual([`${name} 60`]);
  });

  it.each([
    ["that only an owner can complete", "Reconciling", "True", "WaitingForOwner"],
    ["that waits for its window", "Reconciling", "True", "WaitingForWindow"],
    ["that failed", "Stalled", "True", "RolloutTimeout"],
    ["of a suspended service", "Ready", "Unknown", "Suspended"],
  ] as const)("do not count a rescale as in progress %s", async (_, type, status, reason) => {
    const { clock, metrics, series } = setup();
    const propagation = { startedAt: new Date(clock.now() - 90_000).toISOString() };
    metrics.passed("a", aStatus({ propagation, conditions: [{ ...CONDITION, type, status, reason }] }), []);
    const name = "pipe_scaling_oldest_propagation_seconds";
    expect(await series(name)).toEqual([`${name} 0`]);
  });

  it.each([
    ["only an owner could complete it", "Reconciling", "True", "WaitingForOwner"],
    ["it waited for its window", "Reconciling", "True", "WaitingForWindow"],
    ["it failed", "Stalled", "True", "RolloutTimeout"],
    ["the service was suspended", "Ready", "Unknown", "Suspended"],
    ["the service was ready", "Ready", "True", "Complete"],
  ] as const)("report the age of a rescale without the time in which %s", async (_, type, status, reason) => {
    const { clock, metrics, series } = setup();
    const name = "pipe_scaling_oldest_propagation_seconds";
    const waits = [{ ...CONDITION, type, status, reason }];
    const progresses = [
      { ...CONDITION, type: "Reconciling", status: "True", reason: "Progressing" } as const,
    ];
    const startedAt = new Date(clock.now()).toISOString();
    for (const propagation of [{ startedAt }, { startedAt, completedAt: startedAt }]) {
      metrics.passed("a", aStatus({ propagation, conditions: waits }), []);
      await clock.advance(5 * 86_400_000);
      metrics.passed("a", aStatus({ propagation, conditions: progresses }), []);
      expect(await series(name)).toEqual([`${name} 0`]);
      await clock.advance(60_000);
      metrics.passed("a", aStatus({ propagation, conditions: progresses }), []);
      expect(await series(name)).toEqual([`${name} 60`]);
    }
    const again = { startedAt: new Date(clock.now()).toISOString() };
    await clock.advance(10_000);
    metrics.passed("a", aStatus({ propagation: again, conditions: progresses }), []);
    expect(await series(name)).toEqual([`${name} 10`]);
  });

  it("record the duration of a rescale once, when it completes", async () => {
    const { metrics, series } = setup();
    const begun = aStatus({ replicas: 1, propagation: { startedAt: "2026-01-01T00:00:00Z" } });
    const done = aStatus({
      replicas: 1,
      propagation: { startedAt: "2026-01-01T00:00:00Z", completedAt: "2026-01-01T00:02:30Z" },
    });
    metrics.reported({}, begun, []);
    metrics.reported(begun, done, []);
    metrics.reported(done, done, []);
    expect(await series("pipe_scaling_propagation_seconds_")).toEqual(
      expect.arrayContaining([
        "pipe_scaling_propagation_seconds_sum 150",
        "pipe_scaling_propagation_seconds_count 1",
      ]),
    );
  });

  it("count failures by reason, with a fixed set of reasons", async () => {
    const { metrics, series } = setup();
    const events = [
      event("Warning", "Refused"),
      event("Warning", "OfALaterVersion"),
      event("Normal", "Scaled"),
    ];
    metrics.reported({}, aStatus(), events);
    const counted = (await series("pipe_scaling_failures_total")).filter((line) => !line.endsWith(" 0"));
    expect(counted).toEqual([
      'pipe_scaling_failures_total{reason="RolloutFailed"} 1',
      'pipe_scaling_failures_total{reason="Refused"} 1',
    ]);
  });

  it("count the templates that followed their resized pods", async () => {
    const { metrics, series } = setup();
    const resized = event("Normal", "ResizedInPlace");
    metrics.reported({}, aStatus(), [resized, resized, event("Normal", "Scaled")]);
    expect(await series("pipe_scaling_in_place_commits_total")).toEqual([
      "pipe_scaling_in_place_commits_total 2",
    ]);
  });
});
