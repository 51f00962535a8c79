import { formatSize } from "../../domain/size.ts";
import type { Action } from "../decide/actions.ts";
import { formatAllotment } from "../observe/resources.ts";

/** Log fields of an action. */
export function describeAction(action: Action): object {
  switch (action.type) {
    case "create-pipe-scaling":
      return { namespace: action.namespace, spec: action.spec };
    case "resize":
    case "validate":
      return {
        pipe: action.pipe.metadata.name,
        size: formatSize(action.rollout.size),
        attempt: action.rollout.attempts,
        ...("isCommit" in action ? { inPlace: true } : {}),
      };
    case "begin-in-place":
      return { pipe: action.pipe.metadata.name, size: formatSize(action.size) };
    case "resize-pod":
      return { pipe: action.pipe.metadata.name, pod: action.pod.metadata.name, size: action.size };
    case "delete-replica-set":
    case "update-replica-set":
      return { pipe: action.pipe.metadata.name, replicaSet: action.replicaSet.metadata.name };
    case "read-template":
      return { pipe: action.pipe.metadata.name };
    case "resume":
      return { pipe: action.pipe.metadata.name, ...action.fallback };
    case "fall-back":
      return { pipe: action.pipe.metadata.name, size: action.size, ...action.fallback };
    case "roll-back":
      return { pipe: action.pipe.metadata.name, size: formatAllotment(action.size) };
    case "adopt":
      return { pipe: action.pipe.metadata.name, size: formatSize(action.rollout.size) };
    case "refresh":
      return { pipe: action.pipe.metadata.name };
    case "confirm-generation":
      return { pipes: action.pipes.map(({ metadata }) => metadata.name) };
  }
}
