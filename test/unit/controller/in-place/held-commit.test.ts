import { describe, expect, it } from "vitest";
import { HOLD } from "../../../../src/controller/observe/workloads/stateful-set.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import { HeldCommit } from "../../../support/fixtures/held-commit.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

const refusal = (code: number, message: string) =>
  new KubeApiError("PATCH", code, JSON.stringify({ message }));
const REFUSED = refusal(422, "a policy says no");
const DOWN = refusal(500, "failed calling webhook");

/** A commit whose template Kubernetes has seen, and whose second pod may not get its label. */
async function refusedLater(
  strategy: HeldCommit["strategy"],
  ...options: ConstructorParameters<typeof HeldCommit>
): Promise<HeldCommit> {
  const commit = new HeldCommit(...options);
  commit.strategy = strategy;
  commit.refuse = (pod) => (pod === "a-1" ? REFUSED : undefined);
  commit.sync();
  await commit.run(10 * SECOND);
  return commit;
}

describe("pods that are held, if the label of a later one is refused", () => {
  it("stay held with the strategy InPlace, and the label is repeated after a delay that grows", async () => {
    const commit = await refusedLater("InPlace");
    expect(commit.revisions()).toEqual(["a-2", "a-1", "a-2"]);
    expect(commit.labels).toEqual(["a-0", "a-1", "a-2"]);
    await commit.run(4 * MINUTE);
    expect(commit.labels).toHaveLength(3);
    expect(commit.next().failed?.outcome).toMatchObject({ error: { reason: "Refused" } });
    await commit.run(HOUR);
    expect(commit.isHeld).toBe(true);
    // After 5, 15 and 35 minutes.
    expect(commit.labels).toHaveLength(6);
  });

  it("are released after the policy was corrected", async () => {
    const commit = await refusedLater("InPlace");
    commit.refuse = () => undefined;
    await commit.run(6 * MINUTE);
    expect(commit.revisions()).toEqual(["a-2", "a-2", "a-2"]);
    commit.sync();
    await commit.run(MINUTE);
    expect(commit.isHeld).toBe(false);
    expect(commit.view().lastRollout?.inPlaceFailure).toBeUndefined();
  });

  it("get it at once when a retry is requested", async () => {
    const commit = await refusedLater("InPlace");
    commit.refuse = () => undefined;
    commit.requestRetry();
    await commit.run(SECOND);
    expect(commit.revisions()).toEqual(["a-2", "a-2", "a-2"]);
  });

  it("are released with the reason if pods may be replaced", async () => {
    const commit = await refusedLater("InPlaceOrRollout");
    expect(commit.isHeld).toBe(false);
    expect(commit.view().lastRollout?.inPlaceFailure).toMatchObject({ reason: "Refused" });
  });

  it("are then recorded without those that their owner keeps, because Kubernetes replaces only the others", async () => {
    const updateStrategy = { type: "RollingUpdate", rollingUpdate: { partition: HOLD + 1 } } as const;
    const commit = await refusedLater("InPlaceOrRollout", { options: { updateStrategy } });
    expect(commit.isHeld).toBe(false);
    expect(commit.view().lastRollout).toMatchObject({ replicas: 2, inPlaceFailure: { reason: "Refused" } });
  });

  it("are released with the reason also if a webhook was down at first", async () => {
    const commit = new HeldCommit();
    commit.refuse = (pod) => (pod === "a-1" ? DOWN : undefined);
    commit.sync();
    await commit.run(40 * SECOND);
    expect(commit.isHeld).toBe(true);
    commit.refuse = (pod) => (pod === "a-1" ? REFUSED : undefined);
    await commit.run(2 * MINUTE);
    expect(commit.isHeld).toBe(false);
    expect(commit.view().lastRollout?.inPlaceFailure).toMatchObject({ reason: "Refused" });
  });
});

describe("pods that are held, and have their labels", () => {
  it("stay held until Kubernetes has seen that their owner scales them, even if it has completed the revision", async () => {
    const commit = new HeldCommit();
    commit.sync();
    await commit.run(SECOND);
    expect(commit.revisions()).toEqual(["a-2", "a-2", "a-2"]);
    commit.sync({ currentRevision: "a-2" });
    commit.restart();
    commit.scale(4);
    await commit.run(5 * MINUTE);
    expect(commit.isHeld).toBe(true);
    expect(commit.view().size).toEqual(sizeOfCores(4));
    commit.sync({ replicas: 4, updatedReplicas: 4 });
    await commit.run(SECOND);
    expect(commit.isHeld).toBe(false);
    expect(commit.view().size).toEqual(sizeOfCores(4));
  });

  it.each([
    ["the controller goes on", () => undefined],
    ["the next controller goes on", (commit: HeldCommit) => commit.restart()],
  ])("are released when Kubernetes counts them, although they got them late, and %s", async (_, goOn) => {
    const commit = await labeledLate();
    goOn(commit);
    await commit.run(20 * SECOND);
    expect(commit.isHeld).toBe(true);
    commit.sync();
    await commit.run(SECOND);
    expect(commit.isHeld).toBe(false);
  });

  it("are released 30 s after that if Kubernetes does not count them", async () => {
    const commit = await labeledLate();
    await commit.run(29 * SECOND);
    expect(commit.isHeld).toBe(true);
    await commit.run(2 * SECOND);
    expect(commit.isHeld).toBe(false);
    expect(commit.view().size).toEqual(sizeOfCores(4));
  });

  it("get the label too if they are created meanwhile", async () => {
    const commit = await labeledLate();
    commit.recreate(1);
    await commit.run(31 * SECOND);
    expect(commit.revisions()).toEqual(["a-2", "a-2", "a-2"]);
    expect(commit.isHeld).toBe(true);
    commit.sync();
    await commit.run(SECOND);
    expect(commit.isHeld).toBe(false);
  });
});

describe("pods with the strategy OnDelete", () => {
  const updateStrategy = { type: "OnDelete" } as const;

  it("get their labels, so that a change of the strategy replaces none", async () => {
    const commit = new HeldCommit({ options: { updateStrategy } });
    commit.sync();
    await commit.run(31 * SECOND);
    expect(commit.revisions()).toEqual(["a-2", "a-2", "a-2"]);
    commit.sync();
    await commit.run(SECOND);
    expect(commit.isHeld).toBe(false);
  });

  it("keep their revision, and the template gets it again, if Kubernetes does not see another one", async () => {
    const commit = new HeldCommit({ options: { updateStrategy }, status: { currentRevision: "a-0" } });
    await commit.run(31 * SECOND);
    expect(commit.isHeld).toBe(false);
    expect(commit.view().size).toEqual(sizeOfCores(1));
  });

  it("count as committed without their labels if these are refused", async () => {
    const commit = new HeldCommit({ options: { updateStrategy } });
    commit.refuse = () => REFUSED;
    commit.sync();
    await commit.run(SECOND);
    expect(commit.isHeld).toBe(false);
    expect(commit.view().size).toEqual(sizeOfCores(4));
  });
});

/** All pods got their labels after the time of the commit, because a webhook was down. One had it before. */
async function labeledLate(): Promise<HeldCommit> {
  const commit = new HeldCommit();
  commit.refuse = (pod) => (pod === "a-0" ? undefined : DOWN);
  commit.sync();
  await commit.run(MINUTE);
  commit.refuse = () => undefined;
  commit.requestRetry();
  await commit.run(1);
  expect(commit.revisions()).toEqual(["a-2", "a-2", "a-2"]);
  return commit;
}
