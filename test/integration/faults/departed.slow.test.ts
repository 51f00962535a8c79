import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, beforeEach, expect, it } from "vitest";
import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../../src/controller/names.ts";
import { isInCommit } from "../../../src/controller/observe/pipe-view.ts";
import { KINDS, type PipeKind } from "../../../src/controller/observe/workloads/kinds.ts";
import { collectionPath, objectPath, PODS } from "../../../src/kube/paths.ts";
import type { Pod } from "../../../src/kube/pods.ts";
import type { Workload } from "../../../src/kube/workloads.ts";
import { pipeDeployment, pipeStatefulSet } from "../../support/fixtures/pipe.ts";
import { TestEnvironment } from "../../support/test-environment.ts";
import { restrictController } from "../in-place-account.ts";
import { cpuOf } from "../stateful-loader.ts";
import { controllerKubeconfig, RestartingController } from "./controller-process.ts";
import { FaultyProxy, type ProxiedRequest } from "./faulty-proxy.ts";

/*
 * The owner takes a workload from the controller in the middle of a commit, and the controller is dead. No watch of the
 * next one shows the workload.
 */

let environment: TestEnvironment;
let proxy: FaultyProxy;
let controller: RestartingController | undefined;
beforeEach(async () => {
  environment = await TestEnvironment.create();
  await restrictController(environment);
  proxy = await FaultyProxy.start(environment.cluster);
});
afterEach(async () => {
  await controller?.end();
  await environment.end();
  await proxy.stop();
});

/** The write that follows the pause or the hold. */
const NEXT: Readonly<Record<PipeKind, string>> = { Deployment: "replicasets", StatefulSet: "pods" };

function pathOf(kind: PipeKind): string {
  return objectPath(KINDS[kind].resource, environment.pipes, "pipe");
}

/** Two pods of one core. */
async function create(kind: PipeKind, partition: number): Promise<void> {
  const { serviceId, pipes: namespace } = environment;
  const podLabels = { [SERVICE_LABEL]: serviceId, [TYPE_LABEL]: DATABASE_TYPE };
  const options = { name: "pipe", namespace, serviceId, cores: 1, replicas: 2, podLabels };
  const updateStrategy = { type: "RollingUpdate", rollingUpdate: { partition } } as const;
  const object =
    kind === "Deployment" ? pipeDeployment(options) : pipeStatefulSet({ ...options, updateStrategy });
  await environment.create(KINDS[kind].resource, namespace, object);
}

/** Resolves when the pipe is ready. */
async function start(): Promise<RestartingController> {
  const kubeconfig = proxy.kubeconfig(await controllerKubeconfig(environment));
  const running = new RestartingController(environment, kubeconfig, () => ({
    resizeStrategy: "InPlaceOrRollout",
  }));
  controller = running;
  await environment.waitForCondition("Ready", "True");
  return running;
}

async function change(kind: PipeKind, body: object): Promise<void> {
  await environment.client.json({
    method: "PATCH",
    path: pathOf(kind),
    patchType: "application/strategic-merge-patch+json",
    query: { fieldManager: "owner" },
    body,
  });
}

async function pods(): Promise<readonly Pod[]> {
  const path = collectionPath(PODS, environment.pipes);
  const { items } = await environment.client.json<{ readonly items: readonly Pod[] }>({ path });
  return items.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
}

async function uids(): Promise<readonly string[]> {
  return (await pods()).map(({ metadata }) => metadata.uid);
}

async function isCommitting(kind: PipeKind): Promise<boolean> {
  return isInCommit(KINDS[kind].toView(await environment.client.json<Workload>({ path: pathOf(kind) })));
}

it("a Deployment that loses its labels while the response to its pause is lost and no watch works follows its owner again", async () => {
  await create("Deployment", 0);
  const running = await start();
  const before = await uids();
  let isCut = false;
  let isRemoved = false;
  let isSearched = false;
  proxy.handle = ({ verb, resource, url }: ProxiedRequest) => {
    if (resource === "leases") return undefined;
    const isPause = verb === "patch" && resource === "deployments" && !url.includes("dryRun");
    if (!isCut && isPause) {
      isCut = true;
      proxy.cutWatches();
      return { type: "lose-response" };
    }
    if (isCut && !isRemoved) return { type: "drop" };
    // A read of this Deployment would show the pause.
    if (isRemoved && url.includes("database%2C!")) isSearched = true;
    return isRemoved && !isSearched && url.includes("fieldSelector") ? { type: "drop" } : undefined;
  };
  await environment.requestSize(4);
  await waitFor(() => isCut, { what: "the Deployment to be paused" });
  // From then on, the watch begins with a list, and so misses the pause.
  const isOutage = () =>
    proxy.requests.some(({ url, handling }) => /\/deployments\?.*limit=1&/.test(url) && handling === "drop");
  await waitFor(isOutage, { what: "the watch to fail" });
  expect(await isCommitting("Deployment")).toBe(true);
  await change("Deployment", { metadata: { labels: { [SERVICE_LABEL]: null } } });
  isRemoved = true;
  await waitFor(async () => !(await isCommitting("Deployment")), { what: "the commit to end" });
  expect(running.starts).toBe(1);
  expect(await uids()).toEqual(before);
});

it.each([
  ["Deployment", SERVICE_LABEL, 0],
  ["Deployment", TYPE_LABEL, 0],
  ["StatefulSet", SERVICE_LABEL, 0],
  ["StatefulSet", TYPE_LABEL, 1],
] as const)(
  "a %s that loses the label %s during a commit while the controller is dead follows its owner again (partition %i)",
  async (kind, label, partition) => {
    await create(kind, partition);
    const running = await start();
    const before = await uids();
    let isKilled = false;
    let isRemoved = false;
    proxy.handle = ({ verb, resource, url }: ProxiedRequest) => {
      if (!isKilled && verb === "patch" && resource === NEXT[kind] && !url.includes("dryRun")) {
        isKilled = true;
        running.current.signal("SIGKILL");
      }
      // The next controller sees nothing until the label is gone.
      return isKilled && !isRemoved ? { type: "drop" } : undefined;
    };
    await environment.requestSize(4);
    await waitFor(() => isKilled, { what: "the controller to be killed" });
    await change(kind, { metadata: { labels: { [label]: null } } });
    expect(await isCommitting(kind)).toBe(true);
    isRemoved = true;
    await waitFor(async () => !(await isCommitting(kind)), { what: "the commit to end" });
    expect(running.starts).toBe(2);
    expect(await uids()).toEqual(before);
    expect((await pods()).map(cpuOf)).toEqual(["4", "4"]);
    await change(kind, { spec: { template: { metadata: { labels: { release: "next" } } } } });
    const isNext = async () => {
      const releases = (await pods()).map(({ metadata }) => metadata.labels?.["release"]);
      return releases.length === 2 && releases.every((each, number) => each === "next" || number < partition);
    };
    await waitFor(isNext, { what: "the next change of the owner to be rolled out" });
  },
);
