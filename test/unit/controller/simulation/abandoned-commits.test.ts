import { describe, expect, it } from "vitest";
import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../../../src/controller/names.ts";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import { LOST_ANSWER } from "../../../support/simulation/cluster.ts";
import { HeldPipe } from "../../../support/simulation/held-steps.ts";
import { StepRequests } from "../../../support/simulation/moments.ts";
import { PipeGroup } from "../../../support/simulation/pipe-group.ts";
import { WINDOWS } from "../../../support/simulation/windows.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const IMAGE = "registry.example/pipe:2";

/** Ways in which a Deployment leaves the selection of the controller. */
const REMOVALS: readonly [string, Readonly<Record<string, null>>][] = [
  ["both labels", { [SERVICE_LABEL]: null, [TYPE_LABEL]: null }],
  ["the label of the service", { [SERVICE_LABEL]: null }],
  ["the label of the type", { [TYPE_LABEL]: null }],
];

describe.each(WINDOWS)("a Deployment that loses its labels $when of a resize in place", ({ reach }) => {
  it.each(REMOVALS)(
    "does not stay paused, and rolls out the next image of its owner: %s",
    async (_, labels) => {
      const pipe = await HeldPipe.start();
      let isReached = false;
      reach(pipe, () => {
        isReached = true;
        pipe.cluster.setLabels("pipe", labels);
      });
      await pipe.request(2, MINUTE);
      expect(isReached).toBe(true);
      expect(pipe.isPaused).toBe(false);
      expect(pipe.uids()).toEqual(pipe.before);
      pipe.setImage(IMAGE);
      await pipe.run(MINUTE);
      expect(pipe.kept()).toEqual([]);
      expect(pipe.deployment.spec.template.spec.containers).toMatchObject([{ image: IMAGE }]);
      // The controller has nothing to do with it any more.
      const writes = pipe.cluster.attempts.length;
      await pipe.run(10 * MINUTE);
      expect(pipe.cluster.attempts.slice(writes).filter(({ target }) => target.endsWith(" pipe"))).toEqual(
        [],
      );
    },
  );

  it.each(REMOVALS)(
    "is left alone although the watch shows that later than a response: %s",
    async (_, labels) => {
      const pipe = await HeldPipe.start();
      pipe.cluster.eventDelayMs = 300;
      reach(pipe, () => pipe.cluster.setLabels("pipe", labels));
      await pipe.request(2, MINUTE);
      expect(pipe.isPaused).toBe(false);
      expect(pipe.longestPauseMs).toBeLessThan(5 * SECOND);
      expect(pipe.uids()).toEqual(pipe.before);
      const { pipes, observedGeneration } = pipe.simulation.status(1);
      expect([pipes?.total, observedGeneration]).toEqual([0, pipe.simulation.generation(1)]);
      const writes = pipe.cluster.attempts.length;
      await pipe.request(4, 10 * MINUTE);
      const targets = pipe.cluster.attempts.slice(writes).map(({ target }) => target);
      expect(targets.filter((target) => !target.startsWith("pipescalings"))).toEqual([]);
    },
  );

  it.each(REMOVALS)(
    "does not stay paused if the controller is killed before that, and the labels never come back: %s",
    async (_, labels) => {
      const pipe = await HeldPipe.start();
      reach(pipe, () => {
        pipe.simulation.stop();
        pipe.cluster.setLabels("pipe", labels);
      });
      await pipe.request(2, MINUTE);
      pipe.simulation.start();
      await pipe.run(MINUTE);
      expect(pipe.isPaused).toBe(false);
      expect(pipe.uids()).toEqual(pipe.before);
      pipe.setImage(IMAGE);
      await pipe.run(MINUTE);
      expect(pipe.kept()).toEqual([]);
    },
  );

  it("does not stay paused if the controller is killed at the same time and the labels come back", async () => {
    const pipe = await HeldPipe.start();
    reach(pipe, () => {
      pipe.simulation.stop();
      pipe.cluster.setLabels("pipe", { [SERVICE_LABEL]: null });
    });
    await pipe.request(2, MINUTE);
    pipe.simulation.start();
    await pipe.run(MINUTE);
    pipe.cluster.setLabels("pipe", { [SERVICE_LABEL]: pipe.serviceId });
    await pipe.run(5 * MINUTE);
    pipe.expectSettled(2);
    pipe.expectNoRestart();
  });
});

describe.each([
  ["before", 0],
  ["after", 200],
])("six Deployments that are deleted %s a response to their pause is missed", (_, delayMs) => {
  const startDeleted = async () => {
    const group = await PipeGroup.start({ pipes: 7 });
    const { cluster, names } = group;
    const lost = new Set<string>();
    cluster.fault = (request, pipe) => {
      if (!pipe || new StepRequests().next(request) !== "pause") return undefined;
      const { name } = pipe.metadata;
      if (lost.size === names.length - 1 && !lost.has(name)) return undefined;
      lost.add(name);
      cluster.clock.after(delayMs, () => cluster.beginRemoval(name));
      return LOST_ANSWER;
    };
    // No read shows the outcome before the Deployment is being deleted.
    const { latencyMs } = cluster;
    cluster.latencyMs = (request) => {
      const [, name = ""] = /^metadata\.name=(.*)/.exec(`${request.query?.["fieldSelector"]}`) ?? [];
      return lost.has(name) ? MINUTE : latencyMs(request);
    };
    group.request(4);
    await group.run(MINUTE);
    expect(lost.size).toBe(6);
    return { group, left: names.filter((name) => !lost.has(name)) };
  };

  it("keep no place from another one", async () => {
    const { group, left } = await startDeleted();
    expect(left.map((name) => group.simulation.sizes(name))).toEqual([["4000m/16Gi"]]);
  });

  it("do not delay the end of the process", async () => {
    const { group } = await startDeleted();
    let isEnded = false;
    void group.simulation.terminate().then(() => {
      isEnded = true;
    });
    await group.run(11 * SECOND);
    expect(isEnded).toBe(true);
  });
});

describe("a Deployment that lost its labels and cannot be resumed", () => {
  it("does not delay the status of its service", async () => {
    const group = await PipeGroup.start({ pipes: 2 });
    const { cluster, simulation } = group;
    let lost: string | undefined;
    cluster.onDeployment.push(({ metadata: { name }, spec }) => {
      if (lost !== undefined || !spec.paused) return;
      lost = name;
      cluster.clock.after(1, () => cluster.setLabels(name, { [SERVICE_LABEL]: null }));
    });
    cluster.fault = ({ method, path }) =>
      lost !== undefined && method === "PATCH" && path.endsWith(`/deployments/${lost}`)
        ? { error: new KubeApiError("PATCH", 500, "{}") }
        : undefined;
    group.request(2);
    await group.run(5 * MINUTE);
    expect(group.paused()).toEqual([lost]);
    expect(simulation.status(1).observedGeneration).toBe(simulation.generation(1));
    expect(simulation.status(1).pipes).toMatchObject({ total: 1, updated: 1 });
    group.request(4);
    await group.run(5 * MINUTE);
    expect(simulation.status(1).observedGeneration).toBe(simulation.generation(1));
    expect(simulation.condition(1)).toMatchObject({ type: "Ready", status: "True" });
  });
});

describe.each(WINDOWS)("SIGTERM $when of a resize in place", ({ reach }) => {
  it("does not leave the Deployment paused, and ends within seconds", async () => {
    const pipe = await HeldPipe.start();
    let isEnded = false;
    let atMs = 0;
    reach(pipe, () => {
      atMs = pipe.cluster.clock.monotonic();
      void pipe.simulation.terminate().then(() => {
        isEnded = true;
      });
    });
    await pipe.request(2, 30 * SECOND);
    expect(atMs).toBeGreaterThan(0);
    expect(isEnded).toBe(true);
    expect(pipe.isPaused).toBe(false);
    const later = pipe.cluster.attempts.filter((each) => each.atMs > atMs + 15 * SECOND);
    expect(later).toEqual([]);
    expect(pipe.uids()).toEqual(pipe.before);
    // The next controller goes on.
    pipe.simulation.start();
    await pipe.run(5 * MINUTE);
    pipe.expectSettled(2);
    pipe.expectNoRestart();
  });

  it("ends within a minute if the controller manager is away, and does not leave the Deployment paused", async () => {
    const pipe = await HeldPipe.start();
    let isEnded = false;
    reach(pipe, () => {
      pipe.workloads.killControllerManager();
      void pipe.simulation.terminate().then(() => {
        isEnded = true;
      });
    });
    await pipe.request(2, MINUTE);
    expect(isEnded).toBe(true);
    expect(pipe.isPaused).toBe(false);
    pipe.workloads.startControllerManager();
    await pipe.run(MINUTE);
    pipe.simulation.start();
    await pipe.run(5 * MINUTE);
    pipe.expectSettled(2);
  });
});

describe.each([["all labels stay", {}] as const, ...REMOVALS])(
  "SIGTERM during slow writes to the ReplicaSet while Kubernetes does not respond: %s",
  (_, labels) => {
    it.each([
      { first: "succeeds", isDeleted: false },
      { first: "has a conflict", isDeleted: true },
    ])(
      "does not undo the commit at the same time, which would replace the pods: the first one $first",
      async ({ isDeleted }) => {
        const pipe = await HeldPipe.start();
        const { cluster, simulation, workloads } = pipe;
        const [deleted = "", ...others] = pipe.podNames();
        let isEnded = false;
        // The shorter time of a commit ends while a write is on its way.
        pipe.at({ step: "write to the ReplicaSet", delayMs: 7 * SECOND }, () => {
          cluster.latencyMs = ({ method = "GET" }) => (method === "GET" ? 5 : 7 * SECOND);
          if (isDeleted) workloads.deletePod(deleted);
          cluster.clock.after(20, () => workloads.killControllerManager());
          cluster.clock.after(60, () => cluster.setLabels("pipe", labels));
          void simulation.terminate().then(() => {
            isEnded = true;
          });
        });
        await pipe.request(2, MINUTE);
        expect(isEnded).toBe(true);
        expect(pipe.isPaused).toBe(false);
        workloads.startControllerManager();
        cluster.latencyMs = () => 5;
        await pipe.run(MINUTE);
        expect(workloads.replaced).toEqual([]);
        expect(pipe.podNames()).toEqual(expect.arrayContaining(others));
        expect(cluster.restartJudge.violations).toEqual([]);
        cluster.setLabels("pipe", { [SERVICE_LABEL]: pipe.serviceId, [TYPE_LABEL]: DATABASE_TYPE });
        simulation.start();
        await pipe.run(5 * MINUTE);
        pipe.expectSettled(2);
        expect(pipe.podNames()).toEqual(expect.arrayContaining(others));
      },
    );
  },
);

it("SIGTERM during one very slow write to the ReplicaSet does not undo the commit at the same time", async () => {
  const pipe = await HeldPipe.start();
  const { cluster, simulation, workloads } = pipe;
  let isEnded = false;
  // The shorter time of a commit ends while the write is on its way.
  pipe.at({ step: "write to the ReplicaSet", delayMs: 12 * SECOND }, () => {
    workloads.killControllerManager();
    void simulation.terminate().then(() => {
      isEnded = true;
    });
  });
  await pipe.request(2, MINUTE);
  expect(isEnded).toBe(true);
  workloads.startControllerManager();
  await pipe.run(MINUTE);
  expect(pipe.uids()).toEqual(pipe.before);
  expect(cluster.restartJudge.violations).toEqual([]);
  simulation.start();
  await pipe.run(5 * MINUTE);
  pipe.expectSettled(2);
  pipe.expectNoRestart();
});

describe("SIGTERM during the commits of many pipes", () => {
  it("begins nothing, and leaves no Deployment paused", async () => {
    const group = await PipeGroup.start({ pipes: 30 });
    const { cluster, simulation, workloads } = group;
    workloads.syncMs = 500;
    group.request(4);
    expect(await group.runUntil(() => group.paused().length > 1, MINUTE)).toBeDefined();
    const paused = group.paused();
    const commits = cluster.attempts.length;
    let isEnded = false;
    void simulation.terminate().then(() => {
      isEnded = true;
    });
    await group.run(30 * SECOND);
    expect(isEnded).toBe(true);
    expect(group.paused()).toEqual([]);
    const begun = cluster.attempts.slice(commits).filter(({ target }) => !target.startsWith("pipescalings/"));
    const others = begun.filter(({ target }) => !paused.some((name) => `${target}-`.includes(` ${name}-`)));
    expect(others).toEqual([]);
    simulation.start();
    workloads.syncMs = 20;
    await group.run(10 * MINUTE);
    group.expectSettled(4);
    group.expectSamePods();
  });
});
