import type { HeldPipe } from "./held-steps.ts";
import { before } from "./moments.ts";

/** A time during a resize in place at which something happens. */
export interface Window {
  /** For the title of a test. */
  readonly when: string;
  /** Calls `act` at this time of the next resize. */
  reach(pipe: HeldPipe, act: () => void): void;
}

/** From the first write to a pod until the Deployment is resumed, in order. */
export const WINDOWS: readonly Window[] = [
  { when: "before the first pod", reach: (pipe, act) => pipe.at(before("resize of the first pod"), act) },
  { when: "after the first pod", reach: (pipe, act) => pipe.at(before("resize of the second pod"), act) },
  { when: "after all pods", reach: (pipe, act) => pipe.at(before("pause"), act) },
  { when: "after the pause", reach: (pipe, act) => pipe.at(before("write to the ReplicaSet"), act) },
  {
    when: "after the write to the ReplicaSet",
    reach: (pipe, act) => pipe.at(before("resumption"), act),
  },
  {
    when: "after the resumption",
    reach: (pipe, act) => pipe.onArrival("resumption", () => pipe.cluster.clock.after(10, act)),
  },
];
