import { expect, it } from "vitest";
import { podOutcome } from "../../../../src/controller/in-place/pod-outcome.ts";
import type { PodView } from "../../../../src/controller/in-place/pod-view.ts";
import { aPod, aResizedPod } from "../../../support/fixtures/pod.ts";
import { aPipe } from "../../../support/fixtures/snapshot.ts";

it.each<[string, PodView | undefined, boolean, string]>([
  ["with the requested size counts as resized", aResizedPod("a"), false, "resized"],
  [
    "that its node is still resizing counts as unfinished",
    aResizedPod("a", { observedGeneration: 1 }),
    false,
    "unfinished",
  ],
  ["that no longer exists counts as unfinished", undefined, false, "unfinished"],
  ["with its old size counts as returned after a fallback", aPod("a"), true, "returned"],
  [
    "with its old size counts as unfinished if the new size is no longer desired",
    aPod("a"),
    false,
    "unfinished",
  ],
  [
    "with the requested size counts as unfinished if a rollout replaces it after the commit",
    aResizedPod("a"),
    true,
    "unfinished",
  ],
])("a pod %s", (_what, pod, isFallback, outcome) => {
  expect(podOutcome(pod, { pipe: aPipe("pipe"), size: "4000m/16Gi", isFallback })).toBe(outcome);
});
