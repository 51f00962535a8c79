import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { atExit } from "@pipe-scaling/local-cluster/at-exit";
import { programsRunFrom } from "@pipe-scaling/local-cluster/processes";
import { check } from "./check.ts";
import { ApiCaller } from "./http.ts";
import { tellWhatToTry } from "./keep.ts";
import type { Narration } from "./narration.ts";
import { Observer } from "./observer.ts";
import { adoptedStep, installStep, pipesStep, processesStep, type Running, seedStep } from "./opening.ts";
import type { OwnProcess } from "./processes.ts";
import { refusalsStep } from "./refusals.ts";
import { organizationsStep, rescaleStep } from "./rescale.ts";
import type { Seeded } from "./seed.ts";
import type { Stage } from "./stage.ts";
import { tierStep } from "./tier-change.ts";

/** Pods take about two seconds to start, and not all the same time, like those of real pipes. */
const POD_START = { podStartMs: 1500, podStartJitterMs: 1000 };

export interface DemoOptions {
  readonly narration: Narration;
  readonly keep: boolean;
  readonly signal: AbortSignal;
}

/** Runs all steps and checks each. At the end everything that it started is removed, unless kept. */
export async function runDemo({ narration, keep, signal }: DemoOptions): Promise<void> {
  narration.title("One authenticated request resizes all database pipes of a service");
  const cluster = await clusterStep(narration, keep, signal);
  // A cluster that is to be kept, too, until all steps have succeeded: a second signal ends the demo in any step.
  const disown = atExit(() => void cluster.stop());
  const processes: OwnProcess[] = [];
  let isKept = false;
  try {
    const observer = await Observer.open(cluster.kubeconfig);
    const stage = { cluster, observer, narration, signal };
    const { seeded, running } = await play(stage, (process) => processes.push(process));
    await observer.close();
    if (keep) {
      isKept = true;
      disown();
      tellWhatToTry(narration, { cluster, baseUrl: running.baseUrl, ...seeded.acme });
    } else {
      await endStep(narration, cluster, processes);
      narration.plain("\nAll steps succeeded. To try it yourself: npm run demo -- --keep");
    }
  } finally {
    // Also ends our processes (processes.ts).
    if (!isKept) await cluster.stop();
  }
}

function clusterStep(narration: Narration, keep: boolean, signal: AbortSignal): Promise<Cluster> {
  return narration.step("Starting a Kubernetes cluster", async () => {
    const cluster = await startCluster({
      name: `demo-${process.pid}`,
      keep,
      signal,
      ...POD_START,
    });
    return { outcome: `A local Kubernetes cluster runs on ${cluster.server}`, result: cluster };
  });
}

async function play(
  stage: Stage,
  started: (process: OwnProcess) => void,
): Promise<{ seeded: Seeded; running: Running }> {
  await installStep(stage);
  const seeded = await seedStep(stage);
  await pipesStep(stage, seeded);
  const running = await processesStep(stage, started);
  await adoptedStep(stage, seeded);
  const caller = new ApiCaller(running.baseUrl, seeded.acme.key, stage.signal);
  await organizationsStep(stage, caller, seeded);
  await rescaleStep(stage, caller, seeded);
  await refusalsStep(stage, caller, seeded);
  await tierStep(stage, caller, seeded);
  return { seeded, running };
}

function endStep(narration: Narration, cluster: Cluster, processes: readonly OwnProcess[]): Promise<void> {
  return narration.step("Stopping", async () => {
    const codes = await Promise.all(processes.map((process) => process.stop()));
    for (const [index, code] of codes.entries()) {
      check(code === 0, `${processes[index]?.name} ended with exit code ${code} on shutdown`);
    }
    await cluster.stop();
    const left = programsRunFrom(cluster.dir).map(({ program }) => program);
    check(left.length === 0, `these processes were left behind: ${left.join(", ")}`);
    return { outcome: "Both processes have ended, and the cluster is removed", result: undefined };
  });
}
