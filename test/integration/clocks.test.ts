import { START_AFTER_ANNOTATION } from "@pipe-scaling/local-cluster/stages";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, expect, it } from "vitest";
import { type Clock, systemClock } from "../../src/runtime/clock.ts";
import { parseClusterCalls } from "../support/cluster-calls.ts";
import { resourcesOf, TestEnvironment } from "../support/test-environment.ts";
import { Invariants } from "./faults/invariants.ts";

const HOUR_MS = 60 * 60_000;
/** Precision of times in the status, and of the server's `Date` header, which the clock follows. */
const FEW_SECONDS_MS = 5000;
/** A busy machine may delay a controller for as long as this. */
const MOST_DELAY_MS = 30_000;

const environments: TestEnvironment[] = [];
afterEach(async () => {
  for (const environment of environments.splice(0)) await environment.end();
});

function clockOffBy(ms: number): Clock {
  return { ...systemClock, now: () => Date.now() + ms };
}

/** Two for each step: the first size, the request, the end of the rollout of each of three pipes, and the result. */
const MOST_STATUS_WRITES = 12;

const WRITE_VERBS = ["create", "update", "patch", "delete"];

/**
 * Number of writes of the controller so far, by verb and resource, without those to its Lease. A conflict is no write:
 * it depends on when the controller manager writes, and is repeated.
 */
async function writesOf(environment: TestEnvironment): Promise<Readonly<Record<string, number>>> {
  const writes = new Map<string, number>();
  for (const { verb, resource, code, count } of parseClusterCalls(await environment.scrape())) {
    if (!WRITE_VERBS.includes(verb) || resource === "leases" || code === "409") continue;
    const key = `${verb} ${resource}`;
    writes.set(key, (writes.get(key) ?? 0) + count);
  }
  return Object.fromEntries(writes);
}

/** Gives three pipes their first size and then another one, with a controller whose clock is wrong. */
async function rescale(clockErrorMs: number) {
  const startedAt = Date.now();
  const environment = await TestEnvironment.create();
  environments.push(environment);
  for (const name of ["pipe-a", "pipe-b", "pipe-c"]) await environment.createPipe({ name, cores: 1 });
  await environment.startController({}, { clock: clockOffBy(clockErrorMs) });
  await environment.waitForCondition("Ready", "True");
  const invariants = await Invariants.observe(environment);
  // A conflict can delay an adoption, and a resize that comes first makes its write needless.
  await invariants.settled(1);
  invariants.accept(2);
  await environment.requestSize(2);
  await invariants.settled(2);
  await invariants.end();
  const { status } = await environment.waitForCondition("Ready", "True");
  const times = [
    ...(status?.conditions ?? []).map(({ lastTransitionTime }) => lastTransitionTime),
    status?.propagation?.startedAt,
    status?.propagation?.completedAt,
  ].map((time) => Date.parse(time ?? ""));
  return { environment, startedAt, endedAt: Date.now(), times, writes: await writesOf(environment) };
}

it.each([
  ["behind", -HOUR_MS],
  ["ahead", HOUR_MS],
])("a controller whose clock is an hour %s does the same as one with a correct clock", async (_, errorMs) => {
  const [right, wrong] = await Promise.all([rescale(0), rescale(errorMs)]);
  expect(resourcesOf(await wrong.environment.pipe("pipe-a"))).toBe("2 8Gi 8Gi");
  expect(wrong.times.length).toBeGreaterThanOrEqual(3);
  for (const time of wrong.times) {
    expect(time).toBeGreaterThan(wrong.startedAt - FEW_SECONDS_MS);
    expect(time).toBeLessThan(wrong.endedAt + FEW_SECONDS_MS);
  }
  const { "patch pipescalings/status": statuses = 0, ...others } = wrong.writes;
  const { "patch pipescalings/status": rightStatuses = 0, ...rightOthers } = right.writes;
  expect(others).toEqual(rightOthers);
  // Steps that end at the same time share a status write.
  expect(rightStatuses).toBeLessThanOrEqual(MOST_STATUS_WRITES);
  expect(statuses).toBeLessThanOrEqual(MOST_STATUS_WRITES);
  const lines = await waitFor(
    () => wrong.environment.log.filter(({ msg }) => String(msg).startsWith("this machine's clock is wrong")),
    { what: "the log line" },
  );
  expect(lines).toHaveLength(1);
  expect(Math.abs(Number(lines[0]?.["correctionSeconds"]) + errorMs / 1000)).toBeLessThan(5);
});

it("a rollout that never completes fails after the same time if the clock is right, an hour ahead or an hour behind", async () => {
  const rolloutTimeoutMs = 4000;
  const timeToFailure = async (clockErrorMs: number): Promise<number> => {
    const environment = await TestEnvironment.create();
    environments.push(environment);
    await environment.startController({ rolloutTimeoutMs }, { clock: clockOffBy(clockErrorMs) });
    await environment.createPipe({
      name: "pipe-a",
      cores: 1,
      podAnnotations: { [START_AFTER_ANNOTATION]: "1h" },
    });
    await environment.waitForCondition("Ready", "False", "Progressing");
    const requestedAt = performance.now();
    await environment.requestSize(2);
    await environment.waitForCondition("Stalled", "True", "RolloutTimeout");
    return performance.now() - requestedAt;
  };
  const times = await Promise.all([0, HOUR_MS, -HOUR_MS].map(timeToFailure));
  for (const ms of times) {
    // Times in the history of a rollout and of the server are whole seconds.
    expect(ms).toBeGreaterThan(rolloutTimeoutMs - 1000);
    expect(ms).toBeLessThan(rolloutTimeoutMs + MOST_DELAY_MS);
  }
});
