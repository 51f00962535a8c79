import { describe, expect, it } from "vitest";
import { ActionRunner } from "../../../../src/controller/apply/action-runner.ts";
import { resourcesFor } from "../../../../src/controller/observe/resources.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { MAX_CALL_CONNECTIONS } from "../../../../src/kube/connection.ts";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import { createLogger } from "../../../../src/telemetry/log.ts";
import { anApplier } from "../../../support/fixtures/applier.ts";
import { aPod } from "../../../support/fixtures/pod.ts";
import { aPipe, aRollout } from "../../../support/fixtures/snapshot.ts";

function setup() {
  const response = Promise.withResolvers<never>();
  const { applier, clock } = anApplier(() => response.promise);
  const enqueued: string[] = [];
  const lines: { readonly msg: string }[] = [];
  const runner = new ActionRunner({
    ...applier,
    clock,
    queue: {
      add: (serviceId) => enqueued.push(serviceId),
      retry: (serviceId, leastMs) =>
        enqueued.push(`${serviceId} with back-off, after at least ${leastMs} ms`),
    },
    log: createLogger("info", "controller", { write: (line) => lines.push(JSON.parse(line)) }),
  });
  const action = {
    type: "resize",
    pipe: aPipe("a"),
    container: "pipe",
    rollout: aRollout(sizeOfCores(4)),
  } as const;
  return { clock, response, enqueued, lines, runner, action };
}

describe("a write that outlasts the reconciliation", () => {
  it("continues in the background, logs its failure and requeues the service with a back-off", async () => {
    const { clock, response, enqueued, lines, runner, action } = setup();
    const running = runner.run("service", [action], undefined);
    await clock.advance(5000);
    expect(await running).toBeUndefined();
    expect(enqueued).toEqual([]);
    expect(runner.isBusy("service")).toBe(true);
    response.reject(new KubeApiError("PATCH /pipe", 409, "{}", { retryAfterHeader: "3" }));
    await runner.settled();
    expect(runner.isBusy("service")).toBe(false);
    expect(enqueued).toEqual(["service with back-off, after at least 3000 ms"]);
    expect(lines).toMatchObject([{ msg: "a slow write failed; trying again" }]);
  });

  it("delays the shutdown of the runner by at most 10 seconds", async () => {
    const { clock, runner, action } = setup();
    const running = runner.run("service", [action], undefined);
    await clock.advance(5000);
    await running;
    let isSettled = false;
    const settled = runner.settled().then(() => {
      isSettled = true;
    });
    await clock.advance(9999);
    expect(isSettled).toBe(false);
    await clock.advance(1);
    await settled;
    expect(isSettled).toBe(true);
  });
});

it("while the writes of hundreds of pipes get no response, only those begin that end what has begun, and reads", async () => {
  const { clock, runner, action } = setup();
  const many = Array.from({ length: 300 }, (_, index) => ({ ...action, pipe: aPipe(`pipe-${index}`) }));
  const begun = runner.affordable("service", many);
  expect(begun).toHaveLength(MAX_CALL_CONNECTIONS / 2);
  const running = runner.run("service", begun, undefined);
  await clock.advance(5000);
  await running;
  const urgent = [
    { type: "resume", pipe: aPipe("paused") },
    { type: "refresh", pipe: aPipe("unknown") },
    { ...action, type: "roll-back", size: sizeOfCores(1) },
    {
      type: "continue-commit",
      pipe: aPipe("held"),
      container: "pipe",
      isOverdue: false,
      mayReplacePods: false,
    },
    {
      type: "return-pod",
      pipe: aPipe("failed"),
      container: "pipe",
      pod: aPod("failed-0"),
      resources: resourcesFor(sizeOfCores(1), false),
    },
  ] as const;
  expect(runner.affordable("service", [...many, ...urgent])).toEqual(urgent);
  expect(runner.affordable("other", [action])).toEqual([action]);
});

it("while the writes of many large services get no response, each next one may begin fewer, and each at least one", async () => {
  const { clock, runner, action } = setup();
  const many = Array.from({ length: 300 }, (_, index) => ({ ...action, pipe: aPipe(`pipe-${index}`) }));
  const counts: number[] = [];
  for (const service of ["a", "b", "c", "d", "e", "f", "g", "h"]) {
    const begun = runner.affordable(service, many).map((each) => ({ ...each }));
    counts.push(begun.length);
    const running = runner.run(service, begun, undefined);
    await clock.advance(5000);
    await running;
  }
  expect(counts).toEqual([64, 21, 7, 2, 1, 1, 1, 1]);
  // The connections that are left are for reads, statuses and urgent actions.
  expect(counts.reduce((sum, each) => sum + each)).toBeLessThan((MAX_CALL_CONNECTIONS * 4) / 5);
  expect(runner.affordable("a", many)).toEqual([]);
});

it("a service with urgent actions may begin as many other actions as one without, in the order of the decision", async () => {
  const { clock, runner, action } = setup();
  const many = Array.from({ length: 300 }, (_, index) => ({ ...action, pipe: aPipe(`pipe-${index}`) }));
  const refresh = { type: "refresh", pipe: aPipe("unknown") } as const;
  const resume = { type: "resume", pipe: aPipe("paused") } as const;
  expect(runner.affordable("a", [refresh, resume, ...many])).toEqual([refresh, resume, ...many.slice(0, 64)]);
  for (const service of ["b", "c", "d", "e"]) {
    const begun = runner.affordable(service, many).map((each) => ({ ...each }));
    const running = runner.run(service, begun, undefined);
    await clock.advance(5000);
    await running;
  }
  // One action is left to each service.
  const decided = [refresh, ...many.slice(0, 2), resume];
  expect(runner.affordable("a", decided)).toEqual([refresh, ...many.slice(0, 1), resume]);
  expect(runner.affordable("b", decided)).toEqual([refresh, resume]);
});

describe("a write that fails while the reconciliation waits for it", () => {
  it("returns its error to the reconciliation, which is retried", async () => {
    const { response, enqueued, lines, runner, action } = setup();
    const conflict = new KubeApiError("PATCH /pipe", 409, "{}");
    response.reject(conflict);
    expect(await runner.run("service", [action], undefined)).toEqual({ error: conflict });
    expect([...enqueued, ...lines]).toEqual([]);
  });
});

it.each<[string, number, object | undefined]>([
  ["a failed write is reported at once", 500, {}],
  ["a conflict is repeated first", 409, undefined],
])("%s", async (_, code, failed) => {
  const { applier, clock } = anApplier(({ method }) =>
    method === "PATCH" ? Promise.reject(new KubeApiError("PATCH /pipe", code, "{}")) : { items: [] },
  );
  const runner = new ActionRunner({
    ...applier,
    clock,
    queue: { add: () => undefined, retry: () => undefined },
    log: createLogger("silent", "controller", { write: () => undefined }),
  });
  const rollout = aRollout(sizeOfCores(4));
  const action = { type: "resize", pipe: aPipe("a"), container: "pipe", rollout } as const;
  expect(await runner.run("service", [action], undefined)).toEqual(failed);
});

it("a dry run that succeeds is not logged with the error of an earlier write", async () => {
  const pipe = aPipe("a");
  const rollout = aRollout(sizeOfCores(4));
  const { applier, clock } = anApplier(() => ({}));
  const messages: string[] = [];
  const error = { reason: "Refused", message: "no" } as const;
  applier.writes.failed(applier.writes.begin("uid-a", "resize", "4000m/16Gi"), error, 1);
  const runner = new ActionRunner({
    ...applier,
    clock,
    queue: { add: () => undefined, retry: () => undefined },
    log: createLogger("debug", "controller", { write: (line) => messages.push(JSON.parse(line).msg) }),
  });
  const checks = { subject: "", checksNodes: false, isCommit: false };
  await runner.run("service", [{ type: "dry-run", pipe, container: "pipe", rollout, ...checks }], "");
  expect(messages).toEqual(["dry-run"]);
});
