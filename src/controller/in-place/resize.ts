import type { DeploymentView } from "../observe/deployment-view.ts";
import type { DeferredPods } from "./deferred-pods.ts";
import type { PodView } from "./pod-view.ts";
import type { PodWatches } from "./pod-watches.ts";
import type { DeploymentTemplate, Fallback, InPlaceView } from "./view.ts";

/** A resize in place that this process tries. Times are of the monotonic clock. */
export interface Resize {
  readonly pipe: DeploymentView;
  readonly size: string;
  /** Absent until the checks before the resize have ended. */
  watches: PodWatches | undefined;
  readonly deferred: DeferredPods;
  readonly resizedAtMs: Map<string, number>;
  readonly triedAtMs: Map<string, number>;
  readonly podsBefore: Map<string, PodView>;
  readonly beganAtMs: number;
  isReady: boolean;
  template: DeploymentTemplate | undefined;
  /** Since this process first saw the Deployment paused for a commit. */
  pause: { readonly atMs: number; readonly cancel: () => void } | undefined;
  failure: Fallback | undefined;
  failedCommits: number;
  /** It took a turn and has not been committed. */
  hasTurn: boolean;
}

/** A resize that ended with a rollout. */
export type FallenBack = Pick<InPlaceView, "size" | "beganAtMs"> & { readonly fallback: Fallback };

export function newResize(
  begun: Pick<Resize, "pipe" | "size" | "deferred" | "beganAtMs" | "hasTurn">,
): Resize {
  return {
    ...begun,
    ...{ watches: undefined, isReady: false, template: undefined, pause: undefined, failure: undefined },
    resizedAtMs: new Map(),
    triedAtMs: new Map(),
    podsBefore: new Map(),
    failedCommits: 0,
  };
}

export function endPause(resize: Resize): void {
  resize.pause?.cancel();
  resize.pause = undefined;
}

export function viewOfResize(resize: Resize, now: Pick<InPlaceView, "isWriting" | "nowMs">): InPlaceView {
  const { pipe, watches, pause, size, isReady, failure, beganAtMs, template } = resize;
  const { resizedAtMs, triedAtMs, podsBefore } = resize;
  const { uid } = pipe.metadata;
  const replicaSets = [...(watches?.replicaSets.values() ?? [])].filter(
    ({ deploymentUid }) => deploymentUid === uid,
  );
  const owners = new Set(replicaSets.map(({ metadata }) => metadata.uid));
  const pods = [...(watches?.pods.values() ?? [])].filter(
    ({ isActive, replicaSetUid = "" }) => isActive && owners.has(replicaSetUid),
  );
  return {
    ...{ size, isReady, fallback: undefined, failure, pods, replicaSets, beganAtMs, template },
    ...{ resizedAtMs, triedAtMs, podsBefore, revision: pipe.revision, pausedAtMs: pause?.atMs },
    ...now,
  };
}

/** The pods are not watched any more. */
export function viewOfFallback(fallenBack: FallenBack, nowMs: number): InPlaceView {
  return {
    ...{ isReady: true, failure: undefined, pods: [], replicaSets: [], revision: 0, isWriting: false },
    resizedAtMs: new Map(),
    triedAtMs: new Map(),
    podsBefore: new Map(),
    ...{ template: undefined, pausedAtMs: undefined },
    ...fallenBack,
    nowMs,
  };
}
