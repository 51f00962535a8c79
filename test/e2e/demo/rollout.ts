import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { sameQuantity } from "../../../src/domain/quantity.ts";
import type { Size } from "../../../src/domain/size.ts";
import { DATABASE_PIPES } from "./objects.ts";
import { isRolledOut, type ObservedScaling, readyCondition, resourcesOf } from "./observer.ts";
import type { ManagedWorkload } from "./ownership.ts";
import type { Stage } from "./stage.ts";

const ROLLOUT_TIMEOUT_MS = 60_000;
const LOOK_MS = 100;

export interface RolloutSeen {
  /** The resource when it became ready. */
  readonly scaling: ObservedScaling;
  readonly seconds: number;
  /** Time at which the demo saw that the last pipe was done (performance.now). */
  readonly lastPipeAt: number;
}

export function hasSize(pipe: ManagedWorkload, size: Size): boolean {
  const { cpu, memory, memoryLimit } = resourcesOf(pipe);
  return (
    sameQuantity(cpu, `${size.cpuMillicores}m`) &&
    sameQuantity(memory, `${size.memoryGib}Gi`) &&
    sameQuantity(memoryLimit, `${size.memoryGib}Gi`)
  );
}

/** Prints each pipe that is done, until the resource is ready with this size. */
export async function followRollout(
  { cluster, observer, narration, signal }: Stage,
  serviceId: string,
  { size, reason }: { readonly size: Size; readonly reason: string },
): Promise<RolloutSeen> {
  const start = performance.now();
  const total = DATABASE_PIPES.length;
  let reported = -1;
  let listed = false;
  let lastPipeAt: number | undefined;
  const look = async (): Promise<ObservedScaling | undefined> => {
    const scaling = await observer.scaling(serviceId);
    const isAbout = scaling?.status?.desired?.replicaCpuMillicores === size.cpuMillicores;
    const updated = isAbout ? (scaling?.status?.pipes?.updated ?? 0) : 0;
    const seconds = (performance.now() - start) / 1000;
    narration.underWay(`${bar(updated, total)} ${updated} of ${total} pipes done, ${seconds.toFixed(0)} s`);
    if (updated > reported) {
      reported = updated;
      narration.seen(`${updated} of ${total} pipes done after ${seconds.toFixed(1)} s`);
    }
    if (updated > 0 && updated < total && !listed) {
      narration.seen("kubectl get psc -A", [await kubectl(cluster, ["get", "psc", "-A"], { signal })]);
      listed = true;
    }
    const pipes = await observer.databasePipes();
    if (pipes.every((pipe) => hasSize(pipe, size) && isRolledOut(pipe))) lastPipeAt ??= performance.now();
    const ready = readyCondition(scaling);
    return isAbout && updated === total && ready?.status === "True" && ready.reason === reason
      ? scaling
      : undefined;
  };
  const scaling = await waitFor(look, {
    what: `all pipes to have ${size.cpuMillicores / 1000} cpu and the resource to be ready, reason ${reason}`,
    timeoutMs: ROLLOUT_TIMEOUT_MS,
    intervalMs: LOOK_MS,
    signal,
  });
  const seconds = (performance.now() - start) / 1000;
  if (lastPipeAt === undefined) throw new Error("the resource was Ready before the last pipe was rolled out");
  if (!listed)
    throw new Error(
      "the rollout was never observed in progress, so the output of kubectl get psc is missing",
    );
  return { scaling, seconds, lastPipeAt };
}

function bar(done: number, total: number): string {
  return "█".repeat(done * 4) + "░".repeat((total - done) * 4);
}

export interface ReadyWait {
  readonly returnedAt: number;
  /** The pipes right after kubectl returned. */
  readonly pipes: readonly ManagedWorkload[];
}

/** Waits for the resource with kubectl, as a script does. */
export async function kubectlWait(
  { cluster, observer, signal }: Stage,
  serviceId: string,
  namespace: string,
): Promise<ReadyWait> {
  await kubectl(
    cluster,
    ["wait", "--for=condition=Ready", `psc/${serviceId}`, "-n", namespace, "--timeout=90s"],
    { signal },
  );
  return { returnedAt: performance.now(), pipes: await observer.databasePipes() };
}
