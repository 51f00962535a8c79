import { expect, it } from "vitest";
import { TIMEOUTS } from "../../../src/controller/timeouts.ts";

it("the controller waits in production for the times that docs/explanation describes", () => {
  const message =
    "src/controller/timeouts.ts and test/unit/controller/timeouts.test.ts differ: correct the wrong one, and docs/explanation, then run npm run test:unit";
  expect(TIMEOUTS, message).toEqual({
    deferredMs: 60_000,
    commitRetry: { firstMs: 60_000, mostMs: 600_000 },
    roomRetry: { firstMs: 60_000, mostMs: 600_000 },
    roomFoundMs: 60_000,
    unreadableMs: 60_000,
    nodesMs: 60_000,
    resizeMs: 120_000,
    commitMs: 30_000,
    stuckCommitMs: 120_000,
    smallerMemoryMs: 30_000,
    outOfMemoryMs: 600_000,
    crashLoopMs: 300_000,
    rescheduleMs: 15_000,
    stuckPodMs: 60_000,
    podEndMs: 5_000,
    orphanPauseMs: 60_000,
    renewalMs: 86_400_000,
    replicaFailureMs: 30_000,
    recreateMs: 30_000,
    adoptMs: 5_000,
    fieldConflictMs: [0, 10_000, 60_000],
    repeatStatusMs: 3_600_000,
    refreshStatusMs: 600_000,
    writeRetry: { firstMs: 1000, mostMs: 300_000 },
    rolloutRetry: { firstMs: 300_000, mostMs: 3_600_000 },
  });
});
