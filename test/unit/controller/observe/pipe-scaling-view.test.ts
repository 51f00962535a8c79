import { describe, expect, it } from "vitest";
import { decide } from "../../../../src/controller/decide/decide.ts";
import { RETRY_ANNOTATION } from "../../../../src/controller/names.ts";
import { requestOf, toPipeScalingView } from "../../../../src/controller/observe/pipe-scaling-view.ts";
import { statusOf } from "../../../../src/controller/report/status.ts";
import { IGNORE_WINDOW_ANNOTATION } from "../../../../src/crd/names.ts";
import { BOOST_REQUEST_ANNOTATION, formatScalingRequest } from "../../../../src/crd/scaling-request.ts";
import { aLabelledPipe, aScaling, aSnapshot, DECIDE_OPTIONS } from "../../../support/fixtures/snapshot.ts";

/** In UTC, its year would have five digits. */
const LAST_UNTIL = "9999-12-31T23:59:59-12:00";
const EIGHT = { replicaCpuMillicores: 8000, replicaMemoryGb: 32 };

function viewOf(annotations: Readonly<Record<string, string>>, until?: string) {
  const { metadata } = aScaling(4);
  const spec = until === undefined ? {} : { boost: { ...EIGHT, until } };
  return toPipeScalingView({ metadata: { ...metadata, annotations }, spec });
}

function statusWith(scaling: ReturnType<typeof viewOf>) {
  const snapshot = aSnapshot([aLabelledPipe("a")], { scaling });
  const { sizing } = decide(snapshot, DECIDE_OPTIONS);
  return statusOf(snapshot, scaling, sizing, DECIDE_OPTIONS.policy);
}

describe("a time in a PipeScaling that is after the year 9999 in UTC", () => {
  it("is reported as the last time that a status can have if a boost ends then", () => {
    expect(statusWith(viewOf({}, LAST_UNTIL)).boost?.until).toBe("9999-12-31T23:59:59Z");
  });

  it("belongs to the API request of the boost", () => {
    const request = formatScalingRequest({
      ...EIGHT,
      requestId: "request-1",
      apiKey: "key-1",
      requestedAt: "2026-01-31T20:00:00Z",
      until: LAST_UNTIL,
    });
    const view = viewOf({ [BOOST_REQUEST_ANNOTATION]: request }, LAST_UNTIL);
    const until = { untilMs: Date.parse("9999-12-31T23:59:59.999Z") };
    const boost = { size: { cpuMillicores: 8000, memoryGib: 32 }, ...until };
    expect(requestOf(view, boost)?.requestId).toBe("request-1");
  });

  it.each([LAST_UNTIL, "+275760-09-13T00:00:00Z"])(
    "is the last time that a status can have if a retry is requested for %s",
    (time) => {
      const view = viewOf({ [RETRY_ANNOTATION]: time, [IGNORE_WINDOW_ANNOTATION]: time });
      const lastMs = Date.parse("9999-12-31T23:59:59.999Z");
      expect(view).toMatchObject({ retryRequestedAtMs: lastMs, windowIgnoredUntilMs: lastMs });
      expect(view.malformedAnnotations).toEqual([]);
    },
  );
});

it("a boost whose end is no time has no effect", () => {
  expect(statusWith(viewOf({}, "2030-01-01T00:00:00+99:99")).boost).toBeUndefined();
});
