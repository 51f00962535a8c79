import { InPlaceResizes } from "../../src/controller/in-place/resizes.ts";
import type { DeploymentView } from "../../src/controller/observe/deployment-view.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import type { Store } from "../../src/runtime/store.ts";

/** For tests in which pipes are resized by rollouts only. */
export function noResizes(pipes: Store<DeploymentView>, clock: Clock): InPlaceResizes {
  const unexpected = () => Promise.reject(new Error("no resize in place is expected"));
  const client = { json: unexpected, stream: unexpected };
  return new InPlaceResizes({ client, clock, pipes, enqueue: () => undefined, onProblem: () => undefined });
}
