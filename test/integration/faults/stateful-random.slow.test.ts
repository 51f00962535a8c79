import { setTimeout as delay } from "node:timers/promises";
import { environment as env } from "@pipe-scaling/local-cluster/environment";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, beforeEach, expect, it } from "vitest";
import { SERVICE_LABEL, TYPE_LABEL } from "../../../src/controller/names.ts";
import { isConflict } from "../../../src/kube/errors.ts";
import { objectPath, PODS } from "../../../src/kube/paths.ts";
import { resourcesOf, TestEnvironment } from "../../support/test-environment.ts";
import { restrictController } from "../in-place-account.ts";
import { committed, expectQuiet, isHeld } from "../stateful-commit.ts";
import { Loaders } from "../stateful-loader.ts";
import { controllerKubeconfig, RestartingController } from "./controller-process.ts";
import { FaultyProxy, type Handling } from "./faulty-proxy.ts";
import { randomOf, seed } from "./random-numbers.ts";
import { StatefulJudge } from "./stateful-judge.ts";

const STEPS = Number(env["PIPE_SCALING_TEST_STEPS"] ?? 50);
const PAUSE_MS = 400;
const MOST_STEP_MS = 6000;
const LABELS = { [TYPE_LABEL]: "database" };

let environment: TestEnvironment;
let proxy: FaultyProxy;
let controller: RestartingController | undefined;
let judge: StatefulJudge | undefined;
beforeEach(async () => {
  environment = await TestEnvironment.create();
  await restrictController(environment);
  proxy = await FaultyProxy.start(environment.cluster);
});
afterEach(async () => {
  await controller?.end();
  await judge?.end();
  await environment.end();
  await proxy.stop();
});

it(`a StatefulSet and a Deployment get their sizes in place through ${STEPS} random steps (seed ${seed})`, {
  timeout: 300_000 + MOST_STEP_MS * STEPS,
}, async () => {
  const random = randomOf(seed);
  const below = (count: number) => Math.floor(random() * count);
  const oneOf = <T>(...all: readonly T[]): T => {
    const [first] = all.slice(below(all.length));
    if (first === undefined) throw new Error("there is nothing to choose from");
    return first;
  };
  const loaders = new Loaders(environment);
  const kubeconfig = proxy.kubeconfig(await controllerKubeconfig(environment));
  const running = new RestartingController(environment, kubeconfig, () => ({
    resizeStrategy: "InPlaceOrRollout",
  }));
  controller = running;
  await loaders.create();
  const podLabels = { ...LABELS, [SERVICE_LABEL]: environment.serviceId };
  await environment.createPipe({ name: "cdc", cores: 1, podLabels });
  await loaders.ready();
  const observed = await StatefulJudge.observe(environment);
  judge = observed;

  let faults = 0;
  proxy.handle = ({ verb, resource }): Handling | undefined => {
    const isWrite = verb === "patch" && resource !== "pipescalings/status";
    if (faults === 0 || !isWrite) return undefined;
    faults -= 1;
    return oneOf<Handling>({ type: "drop" }, { type: "lose-response" });
  };

  const strategyOf = (type: string) => ({
    updateStrategy: { type, ...(type === "OnDelete" ? { rollingUpdate: null } : {}) },
  });
  /**
   * Only a change in the middle of a commit, when pods do not have their label yet, makes Kubernetes replace them.
   * The change is of the version that was judged, so that no commit can begin in between.
   */
  const owns = async (spec: object): Promise<void> => {
    const before = await loaders.read();
    const { replicas = 0, updatedReplicas = 0 } = before.status ?? {};
    if (isHeld(before) || updatedReplicas < replicas) observed.excuse();
    const { resourceVersion } = before.metadata;
    try {
      await loaders.patchObject({ metadata: { resourceVersion }, spec });
    } catch (error) {
      if (!isConflict(error)) throw error;
      await owns(spec);
    }
  };
  const steps: readonly (readonly [weight: number, name: string, run: () => Promise<unknown>])[] = [
    [8, "request", () => environment.requestSize(oneOf(1, 2, 3, 4, 6))],
    [3, "scale", () => loaders.patch({ replicas: 1 + below(4) })],
    [2, "delete a pod", () => deleteOne()],
    [
      1,
      "another image",
      () =>
        owns({
          template: {
            spec: { containers: [{ name: "pipe", image: `registry.example/pipe:${below(1000)}` }] },
          },
        }),
    ],
    [
      2,
      "partition",
      () => owns({ updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: below(4) } } }),
    ],
    [1, "strategy", () => owns(strategyOf(oneOf("OnDelete", "RollingUpdate")))],
    [1, "suspend", () => environment.patchScaling({ suspend: oneOf(true, false, false) })],
    [1, "forget managers", () => loaders.patchObject({ metadata: { managedFields: [{}] } })],
    [1, "remove the labels for a while", () => unlabel()],
    [3, "kill", () => running.current.kill()],
    [1, "terminate", () => running.terminate(60_000)],
    [5, "faults", fail],
    [4, "wait", () => delay(random() * 2000)],
  ];

  async function fail(): Promise<void> {
    faults = 1 + below(4);
  }

  async function deleteOne(): Promise<void> {
    const pods = await loaders.pods();
    const pod = pods[below(pods.length)];
    if (!pod) return;
    observed.deletes(pod.metadata.uid);
    const path = objectPath(PODS, environment.pipes, pod.metadata.name);
    const body = { preconditions: { uid: pod.metadata.uid } };
    try {
      await environment.client.json({ method: "DELETE", path, body });
    } catch (error) {
      // The StatefulSet controller has replaced the pod since the list.
      if (!isConflict(error)) throw error;
    }
  }

  async function unlabel(): Promise<void> {
    await loaders.patchObject({ metadata: { labels: { [SERVICE_LABEL]: null } } });
    await delay(random() * 1000);
    await loaders.patchObject({ metadata: { labels: { [SERVICE_LABEL]: environment.serviceId } } });
  }

  const done: string[] = [];
  const all = steps.flatMap((step) => Array.from({ length: step[0] }, () => step));
  /** The owner takes back what holds its pods, and everything has to get the last size. */
  const settle = async (cores: number) => {
    faults = 0;
    await environment.patchScaling({ suspend: false });
    await owns({ replicas: 3, updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 0 } } });
    await environment.requestSize(cores);
    await committed(loaders, cores);
    await environment.waitForCondition("Ready", "True");
    observed.settled();
    expect([...observed.violations]).toEqual([]);
  };
  try {
    for (let count = 0; count < STEPS; ) {
      for (let most = count + 1 + below(6); count < most; count += 1) {
        const [, name, run] = oneOf(...all);
        done.push(name);
        await run();
        await delay(random() * PAUSE_MS);
      }
      done.push("settle");
      await settle(oneOf(1, 2, 3, 4, 6));
    }
    await settle(5);
    const hasSize = async () => resourcesOf(await environment.pipe("cdc")) === "5 20Gi 20Gi";
    await waitFor(hasSize, { what: "the Deployment to have the size" });
    await expectQuiet(loaders);
  } catch (error) {
    throw new Error(
      `${String(error)}\n${[...observed.violations].join("\n")}\n${done.join(", ")}\n${running.output.slice(-40_000)}`,
      {
        cause: error,
      },
    );
  }
});
