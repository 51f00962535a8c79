import fc from "fast-check";
import { expect, it } from "vitest";
import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../../../src/controller/names.ts";
import type { ResizeStrategy } from "../../../../src/domain/resize-strategy.ts";
import { formatSize, sizeOfCores } from "../../../../src/domain/size.ts";
import type { PipeOptions } from "../../../support/fixtures/pipe.ts";
import { numRuns } from "../../../support/num-runs.ts";
import { idOf } from "../../../support/simulation/inputs.ts";
import type { ResizeOutcome } from "../../../support/simulation/kubelets.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";
import { RevertingOwner } from "../../../support/simulation/reverting-owner.ts";
import type { WebhookKind } from "../../../support/simulation/webhooks.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const PIPES = 3;

/** A group of pipes, and the owners that revert their templates. */
interface History {
  readonly group: PipeGroup;
  readonly owners: Set<RevertingOwner>;
}

type Act<T> = (history: History, value: T, pipe: string) => void;

/** One random step of a history, and the time until the next step. */
function step<T>(name: string, values: fc.Arbitrary<T>, act: Act<T>, weight = 1) {
  // The windows of a resize in place are shorter than a second.
  const waits = fc.oneof(
    { arbitrary: fc.nat(30), weight: 2 },
    { arbitrary: fc.nat(300), weight: 6 },
    { arbitrary: fc.nat(5000), weight: 2 },
    { arbitrary: fc.nat(150_000), weight: 1 },
  );
  const arbitrary = fc.tuple(fc.nat(PIPES - 1), values, waits).map(([index, value, waitMs]) => ({
    [fc.toStringMethod]: () => `${name}(pipe-${index}, ${JSON.stringify(value)}), ${waitMs} ms`,
    waitMs,
    act: (history: History) => act(history, value, `pipe-${index}`),
  }));
  return { name, arbitrary, weight };
}

const nothing = fc.constant(undefined);
/** Often, an earlier size is requested again. */
const cores = fc.oneof(
  { arbitrary: fc.constantFrom(1, 2), weight: 3 },
  { arbitrary: fc.constant(4), weight: 1 },
);
const KINDS: readonly WebhookKind[] = ["deployments", "replicasets", "pods/resize", "pipescalings/status"];

/** A quota of all pods, the largest request, and a CPU limit of pods that are created meanwhile. */
const LIMITS = [{ quota: 3000 }, { quota: 8000 }, { max: 2000 }, { default: 3000 }];
/** Enough for all pods of the largest size twice. */
const NODE_CORES = 64;

/** Puts the labels of a pipe of service 1 on a Deployment. */
function label({ cluster }: PipeGroup, name: string): void {
  cluster.setLabels(name, { [SERVICE_LABEL]: idOf(1), [TYPE_LABEL]: DATABASE_TYPE });
}

const STEPS = [
  step("request a size", cores, ({ group }, value) => group.request(value), 10),
  step("kill and start the controller", nothing, ({ group }) => group.simulation.start(), 4),
  step(
    "send SIGTERM",
    nothing,
    ({ group }) => void group.simulation.terminate().then(() => group.simulation.start()),
  ),
  step("stop the controller for a while", fc.nat(MINUTE), ({ group: { simulation } }, ms) => {
    simulation.stop();
    simulation.clock.after(ms, () => simulation.start());
  }),
  step("suspend", fc.boolean(), ({ group }, isOn) => group.simulation.suspend(1, isOn)),
  step("set the tier", fc.constantFrom("basic", "small"), ({ group }, tier) =>
    group.simulation.setTier(tier),
  ),
  step("request a retry", nothing, ({ group }) => group.simulation.askToRetry(1)),
  step(
    "set the strategy",
    fc.constantFrom("Rollout" as const, "InPlaceOrRollout" as const, "InPlace" as const, null),
    ({ group }, strategy) => group.simulation.setStrategy(1, strategy),
  ),
  step(
    "set the setting",
    fc.constantFrom("Rollout" as const, "InPlaceOrRollout" as const, "InPlace" as const),
    ({ group }, strategy) => group.simulation.start(strategy),
  ),
  step("replace the PipeScaling", nothing, ({ group }) => group.simulation.replaceScaling(1), 2),
  step("empty the status", nothing, ({ group }) => group.simulation.emptyStatus(1), 3),
  step("remove a label", fc.constantFrom(SERVICE_LABEL, TYPE_LABEL), ({ group }, name, pipe) =>
    group.cluster.setLabels(pipe, { [name]: null }),
  ),
  step("put the labels back", nothing, ({ group }, _, pipe) => label(group, pipe), 2),
  step("move to another service", nothing, ({ group }, _, pipe) => group.simulation.move(pipe, 2)),
  step("request a size of the other service", cores, ({ group: { simulation } }, value) => {
    if (simulation.hasScaling(2)) simulation.requestSize(2, value);
  }),
  step("reset managedFields", nothing, ({ group }, _, pipe) => group.cluster.resetManagedFields(pipe)),
  step("remove the annotation", nothing, ({ group }, _, pipe) => group.cluster.removeAnnotation(pipe)),
  step("pause", nothing, ({ group }, _, pipe) => group.cluster.change(pipe, { paused: true })),
  step("resume", nothing, ({ group }, _, pipe) => group.cluster.change(pipe, { paused: null }), 2),
  step("set the image", fc.nat(2), ({ group }, tag, pipe) => group.simulation.setImage(pipe, `image:${tag}`)),
  step("scale", fc.nat(3), ({ group }, replicas, pipe) => group.cluster.change(pipe, { replicas })),
  step("revert at once", fc.constantFrom(3, 30, 400), ({ group, owners }, delayMs, pipe) => {
    const owner = new RevertingOwner(group.cluster, pipe, { delayMs });
    owners.add(owner);
    group.cluster.clock.after(30 * SECOND, () => owner.stop());
  }),
  step(
    "lose a webhook",
    fc.tuple(fc.constantFrom(...KINDS), fc.constantFrom(2, 20, 90), fc.boolean()),
    ({ group }, [kind, seconds, isSilent]) =>
      group.cluster.webhooks.down(kind, seconds * SECOND, { isSilent }),
  ),
  step(
    "lose the controller manager",
    fc.constantFrom(2, 40, 90),
    ({ group: { workloads, cluster } }, seconds) => {
      workloads.killControllerManager();
      cluster.clock.after(seconds * SECOND, () => workloads.startControllerManager());
    },
  ),
  step("delete a pod", fc.constantFrom(0, 15 * SECOND), ({ group }, graceMs, pipe) =>
    group.workloads.deletePod(group.pods(pipe)[0]?.metadata.name ?? "", graceMs),
  ),
  step(
    "obstruct resizes",
    fc.constantFrom<ResizeOutcome>("Deferred", "Infeasible", "Error", "NotObserved"),
    ({ group }, outcome, pipe) => {
      const names = group.pods(pipe).map(({ metadata }) => metadata.name);
      group.workloads.outcome = ({ metadata }) => (names.includes(metadata.name) ? outcome : "Done");
    },
  ),
  step("make room", nothing, ({ group: { workloads } }) => {
    workloads.outcome = () => "Done";
    workloads.look();
  }),
  step("slow down the API server", fc.constantFrom(5, 100, 7000), ({ group: { cluster } }, ms) => {
    cluster.latencyMs = ({ method = "GET" }) => (method === "GET" ? 5 : ms);
  }),
  step("slow down the Deployment controller", fc.constantFrom(20, 2000), ({ group: { workloads } }, ms) => {
    workloads.syncMs = ms;
  }),
  step("resize a pod by another writer", cores, ({ group }, value, pipe) => {
    const [pod] = group.pods(pipe);
    const memory = `${4 * value}Gi`;
    const resources = { requests: { cpu: `${value}`, memory }, limits: { memory } };
    if (pod) group.workloads.resizePod(pod.metadata.name, resources, { manager: "right-sizer" });
  }),
  step("run out of memory", fc.constantFrom(1000, 10_000), ({ group }, stopMs, pipe) => {
    for (const { metadata } of group.pods(pipe)) group.workloads.crash(metadata.name, stopMs, "OOMKilled");
  }),
  step("limit sizes", fc.constantFrom(...LIMITS), ({ group }, limits) =>
    group.workloads.scheduler.limits.set(limits),
  ),
  step("lift the limits", nothing, ({ group }) => group.workloads.scheduler.limits.set({})),
  step("fill the node", fc.constantFrom(0, 1000, 3000), ({ group }, left) => group.workloads.fillNode(left)),
  step("empty the node", nothing, ({ group }) => group.workloads.emptyNode()),
  step("inject a container", fc.boolean(), ({ group }, isOn, pipe) => {
    const { scheduler } = group.workloads;
    scheduler.injected = isOn ? [{ name: "proxy" }] : [];
    group.workloads.deletePod(group.pods(pipe)[0]?.metadata.name ?? "");
  }),
  step("crash a container", fc.constantFrom(0, 1000, 30_000), ({ group }, stopMs, pipe) =>
    group.workloads.crash(group.pods(pipe)[0]?.metadata.name ?? "", stopMs),
  ),
];

const steps = fc.oneof(...STEPS);

/** Each of these replaces pods, lets the controller do that, or leaves a Deployment paused. */
const REPLACING = [
  "set the strategy",
  "set the setting",
  "set the image",
  "revert at once",
  // The Deployment may be in the middle of a commit.
  "pause",
  "resume",
  // During a commit, nothing shows any more who paused the Deployment if the annotation is removed, too.
  "reset managedFields",
];

function start(replicas: number, deployment: Partial<PipeOptions>): Promise<PipeGroup> {
  return PipeGroup.start({ pipes: PIPES, replicas, deployment, nodeCores: NODE_CORES });
}

/** Ends all faults, and makes every Deployment a pipe of service 1 again. */
async function heal({ group, owners }: History, strategy: ResizeStrategy): Promise<void> {
  const { simulation, cluster, workloads } = group;
  for (const owner of owners) owner.stop();
  cluster.webhooks.up();
  workloads.scheduler.limits.set({});
  workloads.scheduler.injected = [];
  workloads.emptyNode();
  // A pod keeps the CPU limit and the containers that it was created with.
  for (const { metadata, spec } of group.names.flatMap((name) => group.pods(name)))
    if (spec.containers.length > 1 || spec.containers[0]?.resources?.limits?.["cpu"] !== undefined)
      workloads.deletePod(metadata.name);
  workloads.outcome = () => "Done";
  workloads.look();
  workloads.startControllerManager();
  workloads.syncMs = 20;
  cluster.latencyMs = () => 5;
  simulation.setTier("basic");
  simulation.suspend(1, false);
  simulation.setStrategy(1, null);
  simulation.start(strategy);
  for (const name of group.names) {
    label(group, name);
    // With the strategy InPlace, only the controller pauses them.
    if (strategy !== "InPlace" && cluster.deployments.get(name)?.spec.paused)
      cluster.change(name, { paused: null });
  }
  // The last timers of the faults.
  await group.run(2 * MINUTE);
}

// After a failure, shrinking the counterexample takes minutes.
it("in every history of resizes in place, each status is true, everything converges, and writes are bounded", {
  timeout: 300_000,
}, async () => {
  const histories = fc.record({
    replicas: fc.constantFrom(1, 2),
    strategy: fc.constantFrom("RollingUpdate" as const, "Recreate" as const),
    firstCores: cores,
    eventDelayMs: fc.constantFrom(0, 10, 300),
    happens: fc.array(steps, { maxLength: 40, size: "max" }),
    lastCores: cores,
  });
  await fc.assert(
    fc.asyncProperty(
      histories,
      async ({ replicas, strategy, firstCores, eventDelayMs, happens, lastCores }) => {
        const group = await start(replicas, { strategy, cores: firstCores });
        const { cluster, simulation } = group;
        const history = { group, owners: new Set<RevertingOwner>() };
        cluster.eventDelayMs = eventDelayMs;
        simulation.addService(2);
        for (const each of happens) {
          each.act(history);
          await group.run(each.waitMs);
        }
        await heal(history, "InPlaceOrRollout");
        const sinceMs = cluster.clock.monotonic();
        group.request(lastCores);
        simulation.askToRetry(1);
        await group.run(HOUR);

        expect(cluster.violations).toEqual([]);
        expect(group.paused()).toEqual([]);
        const size = formatSize(sizeOfCores(lastCores));
        expect(new Set(simulation.sizes(...group.names))).toEqual(new Set([size]));
        expect(group.podSizes().filter((each) => each !== size)).toEqual([]);
        expect(group.messages()).not.toBe("");
        expect(simulation.condition(1)).toMatchObject({ type: "Ready", status: "True" });
        expect(group.busiest(sinceMs)).toEqual([]);
        const written = cluster.attempts.length;
        await group.run(HOUR);
        expect(cluster.attempts.slice(written)).toEqual([]);
        simulation.stop();
      },
    ),
    { numRuns: numRuns(100) },
  );
});

it("in every history with the strategy InPlace, no pod is replaced, everything converges, and writes are bounded", {
  timeout: 300_000,
}, async () => {
  const allowed = STEPS.filter(({ name }) => !REPLACING.includes(name));
  const histories = fc.record({
    replicas: fc.constantFrom(1, 2),
    strategy: fc.constantFrom("RollingUpdate" as const, "Recreate" as const),
    firstCores: cores,
    eventDelayMs: fc.constantFrom(0, 10, 300),
    happens: fc.array(fc.oneof(...allowed), { maxLength: 40, size: "max" }),
    lastCores: cores,
  });
  await fc.assert(
    fc.asyncProperty(
      histories,
      async ({ replicas, strategy, firstCores, eventDelayMs, happens, lastCores }) => {
        const group = await start(replicas, { strategy, cores: firstCores });
        const { cluster, simulation, workloads } = group;
        simulation.start("InPlace");
        cluster.eventDelayMs = eventDelayMs;
        simulation.addService(2);
        const history = { group, owners: new Set<RevertingOwner>() };
        for (const each of happens) {
          each.act(history);
          await group.run(each.waitMs);
        }
        // The last timers of the faults start controllers, and each of them counts its own writes.
        await group.run(2 * MINUTE);
        simulation.start("InPlace");
        const startedMs = cluster.clock.monotonic();
        await group.run(HOUR);
        expect(group.busiest(startedMs)).toEqual([]);
        await heal(history, "InPlace");
        group.request(lastCores);
        await group.run(MINUTE);
        // Only now does a pod count that restarted during a resize to this size, which was not wanted meanwhile.
        simulation.askToRetry(1);
        await group.run(HOUR);
        expect(workloads.replaced).toEqual([]);
        expect(cluster.violations).toEqual([]);
        expect(group.paused()).toEqual([]);
        const size = formatSize(sizeOfCores(lastCores));
        expect(new Set(simulation.sizes(...group.names))).toEqual(new Set([size]));
        expect(group.podSizes().filter((each) => each !== size)).toEqual([]);
        expect(simulation.condition(1)).toMatchObject({ type: "Ready", status: "True" });
        const written = cluster.attempts.length;
        await group.run(HOUR);
        expect(cluster.attempts.slice(written)).toEqual([]);
        simulation.stop();
      },
    ),
    { numRuns: numRuns(100) },
  );
});
