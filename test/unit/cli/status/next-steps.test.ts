import { expect, test } from "vitest";
import type { Place } from "../../../../src/cli/options.ts";
import { nextSteps, printService } from "../../../../src/cli/status/print.ts";
import { viewOf } from "../../../../src/cli/status/scaling-view.ts";
import type { PendingPipe, PipeFailure, PipeScalingStatus } from "../../../../src/crd/pipe-scaling.ts";
import { describedSize } from "../../../../src/crd/size-fields.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { fakeIo } from "../../../support/fakes/fake-io.ts";
import { aScaling } from "../../../support/fixtures/snapshot.ts";

const NOW_MS = Date.parse("2026-06-01T12:05:00Z");
const PLACE: Place = { program: "pipe-scaling", namespace: "other-records" };

function statusOf(status: PipeScalingStatus) {
  const scaling = aScaling(4, { status });
  const service = { id: "service", name: "orders", organizationId: "o", namespace: "pipes" };
  return {
    service,
    organization: undefined,
    scaling,
    view: viewOf("orders", scaling, NOW_MS),
    nowMs: NOW_MS,
  };
}

function steps(status: PipeScalingStatus, place: Partial<Place> = {}) {
  return nextSteps(statusOf(status), { ...PLACE, ...place });
}

const DOCTOR = expect.stringMatching(/check that the controller runs: pipe-scaling doctor .*other-records$/);
const WATCH = expect.stringMatching(/pipe-scaling status service --watch/);

test("the next step is doctor while no controller has observed the newest change of a PipeScaling", () => {
  expect(steps({ observedGeneration: 0, conditions: [] })).toEqual([DOCTOR, WATCH]);
});

test("the next step is doctor while no controller has observed a new PipeScaling", () => {
  expect(steps({})).toEqual([expect.stringMatching(/Check that the controller runs: pipe-scaling doctor/)]);
});

test("the next step of a rescale in progress is to watch it", () => {
  const ready = { type: "Ready", status: "False", reason: "Progressing", message: "" } as const;
  const conditions = [{ ...ready, lastTransitionTime: "2026-06-01T12:00:00Z" }];
  expect(steps({ observedGeneration: 1, conditions })).toEqual([WATCH]);
});

test.each([
  ["mysql-billing", "deployment mysql-billing"],
  ["statefulset/mysql-load", "statefulset/mysql-load"],
])("the next step after a failure of %s is kubectl describe %s", (name, workload) => {
  const stalled = { type: "Stalled", status: "True", reason: "RolloutTimeout", message: "" } as const;
  const conditions = [{ ...stalled, lastTransitionTime: "2026-06-01T12:00:00Z" }];
  const pipes = {
    total: 1,
    updated: 0,
    summary: "0/1",
    pending: [{ name, state: "Failed" as const, message: "" }],
  };
  expect(steps({ observedGeneration: 1, conditions, pipes })[0]).toContain(
    `kubectl describe ${workload} --namespace pipes`,
  );
});

/** The status of a stalled service with one pipe. */
function stalledBecause(reason: string, pipes: PendingPipe[], failures: PipeFailure[]): PipeScalingStatus {
  const stalled = { type: "Stalled", status: "True", reason, message: "" } as const;
  return {
    observedGeneration: 1,
    conditions: [{ ...stalled, lastTransitionTime: "2026-06-01T12:00:00Z" }],
    pipes: { total: 1, updated: 0, summary: "0/1", pending: pipes },
    failures,
  };
}

function failureOf(pipe: string, reason: string): PipeFailure {
  const size = describedSize(sizeOfCores(4));
  return { pipe, size, reason, attempts: 1, message: "", at: "2026-06-01T12:00:00Z" };
}

test.each([
  ["NotSupported", "mysql-billing", "deployment mysql-billing"],
  ["SizeNotRequested", "mysql-billing", "deployment mysql-billing"],
  ["NotSupported", "statefulset/mysql-load", "statefulset/mysql-load"],
])(
  "the next steps while a pipe cannot be resized in place (%s) are to describe %s and to retry",
  (reason, name, workload) => {
    const pending = [
      { name: "mysql-other", state: "Waiting" as const, message: "" },
      { name, state: "Waiting" as const, reason, message: "" },
    ];
    const failures = [failureOf(name, "NotResizedInPlace")];
    expect(steps(stalledBecause("NotResizedInPlace", pending, failures))).toEqual([
      expect.stringContaining(`kubectl describe ${workload} --namespace pipes`),
      expect.stringContaining("retry: kubectl annotate pipescalings service --namespace pipes"),
    ]);
  },
);

test("the next step names the pipe that the conditions name first, although another one is retried", () => {
  const pending = [
    { name: "mysql-retried", state: "Retrying" as const, message: "" },
    { name: "mysql-kept", state: "Waiting" as const, message: "" },
  ];
  const failures = [failureOf("mysql-kept", "NotResizedInPlace"), failureOf("mysql-retried", "WriteFailed")];
  expect(steps(stalledBecause("NotResizedInPlace", pending, failures))[0]).toContain("deployment mysql-kept");
});

test.each([
  ["without failures", "UnknownTier", [], []],
  [
    "although a pipe failed before",
    "UnknownTier",
    [{ name: "mysql", state: "Failed" as const, message: "" }],
    [failureOf("mysql", "RolloutTimeout")],
  ],
  ["although a pipe waited before", "MalformedRecord", [], [failureOf("mysql", "NotResizedInPlace")]],
])("the next step is doctor if a record is wrong, %s", (_, reason, pending, failures) => {
  expect(steps(stalledBecause(reason, pending, failures))).toEqual([
    expect.stringMatching(/^Check the records: pipe-scaling doctor/),
  ]);
});

test("the next steps after a failure act on the cluster of the command", () => {
  const stalled = { type: "Stalled", status: "True", reason: "RolloutTimeout", message: "" } as const;
  const conditions = [{ ...stalled, lastTransitionTime: "2026-06-01T12:00:00Z" }];
  const pending = [{ name: "mysql-load", state: "Failed" as const, message: "" }];
  const pipes = { total: 1, updated: 0, summary: "0/1", pending };
  const place = { kubeconfig: "clusters.yaml", context: "eu" };
  const all = [
    ...steps({ observedGeneration: 1, conditions, pipes }, place),
    ...steps({ observedGeneration: 0, conditions: [] }, place),
  ];
  expect(all).toHaveLength(4);
  for (const step of all) expect(step).toContain(" --kubeconfig clusters.yaml --context eu");
});

test("the commands of the next steps have no line end in them on a narrow terminal", () => {
  const io = fakeIo({ output: true, columns: () => 40 });
  printService(io, statusOf({ observedGeneration: 0, conditions: [] }), { ...PLACE, context: "eu" });
  expect(io.written.out).toContain(
    "NEXT          Watch the progress: pipe-scaling status service --watch --context eu --namespace other-records\n",
  );
});
