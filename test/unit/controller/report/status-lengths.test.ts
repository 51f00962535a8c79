import { expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import type { Snapshot } from "../../../../src/controller/observe/observe.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import { statusOf, unmanagedStatus } from "../../../../src/controller/report/status.ts";
import { MAX_NAME_LENGTH } from "../../../../src/crd/fields.ts";
import { pipeScalingSchema } from "../../../../src/crd/pipe-scaling.ts";
import { formatScalingRequest } from "../../../../src/crd/scaling-request.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { amounts, aPod } from "../../../support/fixtures/pod.ts";
import {
  aPipe,
  aRollout,
  aScaling,
  aSnapshot,
  DECIDE_OPTIONS,
  NOW_MS,
  POLICY,
  rollingTo,
  UNDER_WAY,
} from "../../../support/fixtures/snapshot.ts";

const FOUR = sizeOfCores(4);
/** A cut at an even length would split a character. */
const LONG = `x${"🙂".repeat(10_000)}`;
/** Names with the maximum length of a Deployment name. */
const NAMES = Array.from({ length: 30 }, (_, index) => String(index).padStart(MAX_NAME_LENGTH, "a"));

const failing: PipeView["rollout"] = {
  ...UNDER_WAY,
  replicaFailure: {
    type: "ReplicaFailure",
    status: "True",
    reason: "FailedCreate",
    message: LONG,
    lastTransitionTime: new Date(NOW_MS - 3_600_000).toISOString(),
  },
};

const uidOf = (name: string) => `00000000-0000-4000-8000-${name.slice(-12)}`;

/** Thirty pipes with the longest texts that other writers can set. */
function snapshotOf(pipe: (name: string) => PipeView, changes: Partial<Snapshot> = {}): Snapshot {
  const request = {
    requestId: LONG,
    apiKey: LONG,
    requestedAt: LONG,
    replicaCpuMillicores: 4000,
    replicaMemoryGb: 16,
  };
  const scaling = aScaling(4, { requestAnnotation: formatScalingRequest(request) });
  const tier = { name: LONG, defaultSize: sizeOfCores(1), maximumSize: sizeOfCores(24) };
  const pipes = NAMES.map(pipe).map((each) => {
    const { metadata } = each;
    return { ...each, metadata: { ...metadata, uid: uidOf(metadata.name) } };
  });
  return aSnapshot(pipes, { scaling, tier: { ok: true, value: tier }, ...changes });
}

const pods = new Map(
  NAMES.map((name) => [name, [aPod("pod", { unschedulable: LONG }, { resources: amounts(FOUR) })]]),
);
const inPlaceFailure = { size: FOUR, reason: "Deferred", message: LONG, atMs: NOW_MS } as const;
const fellBack = aRollout(FOUR, { inPlaceFailure });
const stuck = (name: string) => rollingTo(name, FOUR, { stopsOldPodsFirst: false });

it.each<[string, Snapshot]>([
  ["pipes fail", snapshotOf((name) => rollingTo(name, FOUR, { rollout: failing }))],
  ["pods of pipes fit on no node", snapshotOf(stuck, { pods })],
  [
    "pipes cannot be resized in place",
    snapshotOf((name) => rollingTo(name, FOUR, { lastRollout: fellBack }), { strategy: "InPlaceOrRollout" }),
  ],
  [
    "the record of the service is malformed",
    snapshotOf((name) => aPipe(name), {
      tier: { ok: false, obstacle: { reason: "MalformedRecord", message: LONG } },
    }),
  ],
])(
  "the status respects the length limits of the CRD, and no text is cut within a character, if %s",
  (_, snapshot) => {
    const { scaling = aScaling(4) } = snapshot;
    const { sizing } = decide(snapshot, DECIDE_OPTIONS);
    const statuses = [statusOf(snapshot, scaling, { sizing }, POLICY), unmanagedStatus(snapshot, scaling)];
    for (const status of statuses) {
      expect(pipeScalingSchema.safeParse({ status }).error?.issues).toBeUndefined();
      expect(JSON.stringify(status)).not.toMatch(/\\ud[89a-f]/);
    }
    expect(JSON.stringify(statuses)).toContain("🙂");
  },
);
