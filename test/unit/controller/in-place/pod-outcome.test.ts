import { expect, it } from "vitest";
import { podOutcome } from "../../../../src/controller/in-place/pod-outcome.ts";
import type { PodView } from "../../../../src/controller/in-place/pod-view.ts";
import { aPod, aResizedPod } from "../../../support/fixtures/pod.ts";
import { aPipe } from "../../../support/fixtures/snapshot.ts";

it.each<[string, PodView | undefined, boolean, string]>([
  ["with the size is resized", aResizedPod("a"), false, "resized"],
  [
    "whose node has not finished is unfinished",
    aResizedPod("a", { observedGeneration: 1 }),
    false,
    "unfinished",
  ],
  ["that no longer exists is unfinished", undefined, false, "unfinished"],
  ["with its old size is returned by a fallback", aPod("a"), true, "returned"],
  ["with its old size is unfinished if the size was no longer desired", aPod("a"), false, "unfinished"],
  [
    "with the size is unfinished if a rollout replaces it after the commit",
    aResizedPod("a"),
    true,
    "unfinished",
  ],
])("a pod %s", (_what, pod, isFallback, outcome) => {
  expect(podOutcome(pod, { pipe: aPipe("pipe"), size: "4000m/16Gi", isFallback })).toBe(outcome);
});
