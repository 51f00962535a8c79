import { expect, it } from "vitest";
import { WriteHistory } from "../../../../src/controller/apply/write-history.ts";
import { createCaches } from "../../../../src/controller/observe/caches.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { aPipe, aRollout, NOW_MS } from "../../../support/fixtures/snapshot.ts";

it("an outdated write leaves no record if the Deployment was deleted in the meantime", () => {
  const { pipes } = createCaches();
  const writes = new WriteHistory(pipes);
  const pipe = aPipe("a");
  pipes.apply(pipe);
  writes.begin("uid-a", "resize", aRollout(sizeOfCores(4)), NOW_MS);
  writes.unknown("uid-a", { reason: "WriteFailed", message: "cut short" });
  const takeBack = writes.begin("uid-a", "resize", aRollout(sizeOfCores(4)), NOW_MS);
  pipes.remove({ ...pipe, metadata: { ...pipe.metadata, resourceVersion: "2" } });
  takeBack();
  expect(writes.records.size).toBe(0);
  expect(writes.unresolvedRollouts(NOW_MS)).toBe(0);
});

it("counts the writes of a size anew after a week without one", () => {
  const WEEK_MS = 7 * 24 * 3_600_000;
  const writes = new WriteHistory(createCaches().pipes);
  const attemptsAt = (atMs: number) => {
    writes.begin("uid-a", "resize", aRollout(sizeOfCores(4)), atMs);
    return writes.records.get("uid-a")?.attempts;
  };
  expect([0, 1, WEEK_MS + 1, 2 * WEEK_MS + 2].map((ms) => attemptsAt(NOW_MS + ms))).toEqual([1, 2, 3, 1]);
});
