import { REVISION_ANNOTATION } from "../../../src/controller/names.ts";
import type { Deployment } from "../../../src/kube/workloads.ts";
import type { FakeClock } from "../fakes/fake-clock.ts";
import type { SimulationJudge } from "./judge.ts";
import { found, isSame, timeAt } from "./objects.ts";

interface RolloutsOptions {
  readonly clock: FakeClock;
  readonly deployments: ReadonlyMap<string, Deployment>;
  readonly judge: SimulationJudge;
  /** Time in ms until pods of this template are ready; `undefined` if they never are. */
  readonly rolloutMs: (pipe: Deployment) => number | undefined;
  readonly report: (name: string, status: Partial<NonNullable<Deployment["status"]>>) => void;
  readonly setRevision: (name: string, revision: number) => void;
}

const SEEN_MS = 20;
const NEW = "NewReplicaSetAvailable";

/** Simulates the Deployment controller without pods: a rollout only takes its time. */
export class SimulatedRollouts {
  readonly #options: RolloutsOptions;
  /** Each Deployment before the last change of its template, by uid. */
  readonly #earlier = new Map<string, Deployment>();

  constructor(options: RolloutsOptions) {
    this.#options = options;
  }

  templateChanged(before: Deployment): void {
    this.#earlier.set(before.metadata.uid, before);
  }

  earlier(uid: string): Deployment | undefined {
    return this.#earlier.get(uid);
  }

  /** The spec has changed. */
  roll(pipe: Deployment, before: Deployment): void {
    const { clock, deployments, judge, report, rolloutMs } = this.#options;
    const { name, uid, generation } = pipe.metadata;
    const { replicas = 1 } = pipe.spec;
    const isOfTemplate = !isSame(pipe.spec.template, before.spec.template);
    const isCurrent = () => {
      const now = deployments.get(name)?.metadata;
      return now?.uid === uid && now.generation === generation;
    };
    const after = (ms: number, work: () => void) => clock.after(ms, () => isCurrent() && work());
    const since = pipe.status?.conditions?.[0]?.lastTransitionTime ?? this.#time();
    after(SEEN_MS, () => {
      if (isOfTemplate) this.#raiseRevision(name);
      report(name, isOfTemplate ? this.#begun(replicas, since) : {});
    });
    const durationMs = isOfTemplate ? rolloutMs(pipe) : 500;
    if (durationMs === undefined) return;
    after(SEEN_MS + durationMs, () => {
      judge.completed(name);
      // Scaling to zero completes a rollout in progress.
      const isAnnounced = deployments.get(name)?.status?.conditions?.[0]?.reason === NEW;
      const isNew = isOfTemplate || !isAnnounced;
      const conditions = isNew ? { conditions: [progressing(NEW, this.#time(), since)] } : {};
      report(name, { ...running(replicas), ...conditions });
    });
  }

  #begun(replicas: number, since: string) {
    return {
      replicas: replicas + 1,
      updatedReplicas: 1,
      availableReplicas: replicas,
      conditions: [progressing("ReplicaSetUpdated", this.#time(), since)],
    };
  }

  #raiseRevision(name: string): void {
    const { annotations = {} } = found(this.#options.deployments, name).metadata;
    this.#options.setRevision(name, Number(annotations[REVISION_ANNOTATION]) + 1);
  }

  #time(): string {
    return timeAt(this.#options.clock.now());
  }
}

/** The status of a Deployment whose pods have been running since then. */
export function completeStatus(replicas: number, since: string) {
  return { observedGeneration: 1, ...running(replicas), conditions: [progressing(NEW, since, since)] };
}

function progressing(reason: string, lastUpdateTime: string, lastTransitionTime: string) {
  return { type: "Progressing", status: "True", reason, lastUpdateTime, lastTransitionTime };
}

function running(replicas: number) {
  return { replicas, updatedReplicas: replicas, availableReplicas: replicas };
}
