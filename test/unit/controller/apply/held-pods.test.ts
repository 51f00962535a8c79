import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type HeldPods,
  heldStep as stepOf,
} from "../../../../src/controller/apply/workloads/stateful-set.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import { resourcesFor } from "../../../../src/controller/observe/resources.ts";
import { HOLD } from "../../../../src/controller/observe/workloads/stateful-set.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import type { StatefulSetOptions } from "../../../support/fixtures/pipe.ts";
import { aRollout } from "../../../support/fixtures/snapshot.ts";
import { aStatefulPipe } from "../../../support/fixtures/stateful-set.ts";

type Pods = HeldPods["pods"];
type State = Omit<HeldPods, "pods" | "label">;

const { inTurn } = aStatefulPipe();
const REFUSED = { reason: "Refused", message: "a policy says no" } as const;
const STATE: State = { isOverdue: false, canLabel: true, mayReplacePods: true, isLongLabeled: false };
const OVERDUE = { ...STATE, isOverdue: true, canLabel: false };

/** A StatefulSet whose template the controller changed to the revision `a-2`, seen by Kubernetes or not. */
function held(isSeen = true, changes: Parameters<typeof aStatefulPipe>[0] = {}): PipeView {
  const status = isSeen ? { updateRevision: "a-2", updatedReplicas: 0 } : { observedGeneration: 6 };
  const rollout = aRollout(sizeOfCores(4), {
    template: inTurn?.template,
    isCommitting: true,
    committedRevision: "a-1",
  });
  const options = { cores: 4, ...changes?.options };
  return aStatefulPipe({ ...changes, options, status: { ...status, ...changes?.status } }, rollout);
}

/** Kubernetes has counted all of its pods as updated; one may have been created since then. */
const COUNTED = held(true, { status: { updatedReplicas: 3 } });

/** Kubernetes has seen that template, and not yet a later change by the owner. */
const CHANGED_LATER = held(true, { metadata: { generation: 8 } });

function pods(...revisions: readonly string[]): Pods {
  return revisions.map((revision) => ({ revision, isLabeledByUs: false }));
}

/** Instead of the write of labels, the step has the labels. */
function heldStep(pipe: PipeView, all: Pods, state: State) {
  const labels: { pods: (string | undefined)[]; revision: string }[] = [];
  const label: HeldPods["label"] = async (outdated, revision) => {
    labels.push({ pods: outdated.map((each) => each.revision), revision });
  };
  const step = stepOf(pipe, { ...state, pods: all, label });
  if (step.type !== "relabel") return step;
  void step.write();
  return { type: step.type, pods: labels.flatMap((each) => each.pods), revision: labels[0]?.revision };
}

describe("the next step for pods that are held", () => {
  it("labels those that do not have the newest revision", () => {
    const step = heldStep(held(), pods("a-1", "a-2", "a-1"), STATE);
    expect(step).toEqual({ type: "relabel", pods: ["a-1", "a-1"], revision: "a-2" });
  });

  it("labels those that do not have it also if Kubernetes counts all of them", () => {
    const step = heldStep(COUNTED, pods("a-2", "a-2", "a-1"), STATE);
    expect(step).toEqual({ type: "relabel", pods: ["a-1"], revision: "a-2" });
  });

  it("labels those again that it has labeled, if the owner took the size back, and no others", () => {
    const labeled = { revision: "a-3", isLabeledByUs: true };
    const step = heldStep(held(), [labeled, ...pods("a-1", "a-4")], STATE);
    expect(step).toEqual({ type: "relabel", pods: ["a-3", "a-1"], revision: "a-2" });
  });

  it("releases them when all have it and Kubernetes counts them, and when there are none", () => {
    const none = held(true, { options: { replicas: 0 }, status: { replicas: 0 } });
    for (const state of [STATE, { ...OVERDUE, refused: REFUSED }]) {
      expect(heldStep(COUNTED, pods("a-2", "a-2", "a-2"), state)).toEqual({ type: "release" });
      expect(heldStep(none, pods(), state)).toEqual({ type: "release" });
    }
  });

  it("keeps pods with the label until Kubernetes counts them, or has had the time to see them", () => {
    const all = pods("a-2", "a-2", "a-2");
    const none = { type: "relabel", pods: [], revision: "a-2" };
    for (const state of [STATE, OVERDUE, { ...OVERDUE, refused: REFUSED }]) {
      expect(heldStep(held(), all, state)).toEqual(none);
      expect(heldStep(held(), all, { ...state, isLongLabeled: true })).toEqual({ type: "release" });
    }
    // A new pod may have been created meanwhile.
    expect(heldStep(held(), pods("a-2", "a-1"), { ...STATE, isLongLabeled: true }).type).toBe("relabel");
  });

  it("labels no pod of another template, and releases it when the others have had the time to be seen", () => {
    const all = pods("a-1", "a-3", "a-2");
    expect(heldStep(held(), all, STATE)).toEqual({ type: "relabel", pods: ["a-1"], revision: "a-2" });
    const some = pods("a-2", "a-3", "a-2");
    expect(heldStep(held(), some, STATE)).toEqual({ type: "relabel", pods: [], revision: "a-2" });
    const late = heldStep(held(), some, { ...STATE, isLongLabeled: true });
    expect(late).toMatchObject({ type: "release", fallback: { reason: "NotSettled" } });
  });

  it("waits until Kubernetes has seen the template", () => {
    expect(heldStep(held(false), pods("a-1", "a-1"), STATE)).toEqual({ type: "wait" });
  });

  it("labels them even if it is late, because that replaces none", () => {
    expect(heldStep(held(), pods("a-1"), { ...STATE, isOverdue: true }).type).toBe("relabel");
  });

  it("takes the template back if Kubernetes does not see it in time, or if no pod may get the label", () => {
    const back = { type: "take-back", resources: resourcesFor(sizeOfCores(1), false), old: sizeOfCores(1) };
    expect(heldStep(held(false), pods("a-1", "a-1"), OVERDUE)).toEqual(back);
    expect(heldStep(held(), pods("a-1"), { ...OVERDUE, refused: REFUSED })).toEqual(back);
  });

  it("replaces pods if others have the label already, but only if labels are refused and pods may be replaced", () => {
    const some = pods("a-1", "a-2");
    const refused = { ...OVERDUE, refused: REFUSED };
    expect(heldStep(held(), some, refused)).toEqual({ type: "release", fallback: REFUSED });
    expect(heldStep(held(), some, { ...refused, mayReplacePods: false })).toEqual({ type: "wait" });
    expect(heldStep(held(), some, OVERDUE)).toEqual({ type: "wait" });
    expect(heldStep(held(false), some, OVERDUE)).toEqual({ type: "wait" });
  });

  it("releases them with a reason if their owner changed the template, or if nothing shows that", () => {
    const changed = held(true, { options: { image: "registry.example/pipe:2" } });
    for (const pipe of [changed, { ...held(), lastRollout: undefined }])
      expect(heldStep(pipe, pods("a-1"), STATE)).toMatchObject({
        type: "release",
        fallback: { reason: "NotSettled" },
      });
  });

  it.each<[string, Partial<StatefulSetOptions>]>([
    ["with the strategy OnDelete", { updateStrategy: { type: "OnDelete" } }],
    [
      "with a partition that needs no hold",
      { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: HOLD } } },
    ],
  ])("leaves the template as it is %s, because no pod is replaced", (_, options) => {
    const pipe = held(true, { options });
    expect(heldStep(pipe, pods("a-1"), STATE).type).toBe("relabel");
    const refused = { ...OVERDUE, refused: REFUSED };
    expect(heldStep(pipe, pods("a-1"), refused)).toEqual({ type: "release" });
  });
});

describe("in any state, a step", () => {
  const STATES = fc.record({
    isOverdue: fc.boolean(),
    canLabel: fc.boolean(),
    refused: fc.constantFrom(undefined, REFUSED),
    mayReplacePods: fc.boolean(),
    isLongLabeled: fc.boolean(),
  });
  const REVISIONS = fc.oneof(
    fc.array(fc.constantFrom("a-1", "a-2", "a-3"), { maxLength: 5 }),
    fc.array(fc.constant("a-2"), { minLength: 1, maxLength: 5 }),
  );
  const PIPES = fc.constantFrom(held(), COUNTED, CHANGED_LATER, held(false));

  it("that replaces pods has a reason, and that without a reason replaces none", () => {
    fc.assert(
      fc.property(PIPES, REVISIONS, STATES, (pipe, revisions, state) => {
        const { isSeen, isUpdated } = pipe.rollout;
        const step = heldStep(pipe, pods(...revisions), state);
        const isOutdated = revisions.some((each) => each !== "a-2");
        if (step.type === "release")
          expect([isSeen, step.fallback !== undefined]).toEqual([true, isOutdated]);
        // A pod of another template is not replaced for its size.
        const isOfOwner = step.type === "release" && step.fallback?.reason === "NotSettled";
        if (step.type === "release" && step.fallback) expect(isOfOwner || state.mayReplacePods).toBe(true);
        // A pod of any other revision than that of the old template would be replaced.
        if (step.type === "take-back") expect(revisions.filter((each) => each !== "a-1")).toEqual([]);
        if (step.type === "release" && !step.fallback) expect(state.isLongLabeled || isUpdated).toBe(true);
        if (step.type === "relabel") expect(isSeen && (state.canLabel || step.pods.length === 0)).toBe(true);
        if (step.type === "relabel") expect(step.pods.filter((each) => each !== "a-1")).toEqual([]);
      }),
    );
  });
});
