import { describe, expect, test } from "vitest";
import type { ApiClient } from "../../../../src/cli/customer/client.ts";
import { ErrorResponse, NoResponse } from "../../../../src/cli/customer/errors.ts";
import { progress } from "../../../../src/cli/customer/responses.ts";
import { type RequestedSize, watchScaling } from "../../../../src/cli/customer/scaling-watch.ts";
import { poll, type Update } from "../../../../src/cli/view/poll.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";

const PATH = "/v1/organizations/o/services/s/pipesCdcScaling";
const UNTIL = "2026-01-31T20:00:00.000Z";
const AFTER = "2026-01-31T20:00:01.000Z";
const OURS = { size: sizeOfCores(4), requestId: "ours" };

type FakeResult = object | Error;

function refusal(status: number, retryAfterMs?: number): ErrorResponse {
  return new ErrorResponse(`It is refused with ${status}.`, status, retryAfterMs);
}

function progressWith(changes: object = {}): object {
  return {
    state: "propagating",
    reason: "Progressing",
    message: "Some.",
    desired: { replicaCpuMillicores: 4000, replicaMemoryGb: 16, source: "Spec" },
    pipes: { total: 3, updated: 1 },
    failures: [],
    requestId: "ours",
    ...changes,
  };
}

const OTHERS = progressWith({
  state: "scaled",
  requestId: "theirs",
  desired: { replicaCpuMillicores: 8000, replicaMemoryGb: 32, source: "Spec" },
});

/** A watch of an API that sends these responses in order, and then repeats the last one. */
function watchOf(
  responses: { progress?: readonly FakeResult[] },
  options: { requested?: RequestedSize | undefined; hasEndedBoost?: boolean; now?: string } = {
    requested: OURS,
  },
) {
  const { requested, hasEndedBoost = false, now = AFTER } = options;
  const left = [...(responses.progress ?? [])];
  const requests: string[] = [];
  const waits: number[] = [];
  const requestOnce: ApiClient["requestOnce"] = async ({ path }, schema) => {
    requests.push(path.slice(PATH.length));
    const response = (left.length > 1 ? left.shift() : left[0]) ?? new Error("no response");
    if (response instanceof Error) throw response;
    progress.parse(response);
    return { requestId: "r", result: schema.parse(response) };
  };
  const access = {
    url: "https://api",
    authorization: "",
    keySuffix: "",
    ca: undefined,
    profile: undefined,
    flags: "",
  };
  const api = { requestOnce, access, now: () => Date.parse(now) };
  const watched = watchScaling({ api, path: PATH, service: "s", requested, hasEndedBoost });
  const wait = async (ms: number) => void waits.push(ms);
  const updates = poll({ ...watched, wait }, new AbortController().signal);
  return { updates, requests, waits };
}

async function take(updates: AsyncGenerator<Update>, count: number): Promise<Update[]> {
  const taken: Update[] = [];
  while (taken.length < count) {
    const { done, value } = await updates.next();
    if (done) throw new Error("the updates have ended");
    taken.push(value);
  }
  return taken;
}

describe("a watch through the API", () => {
  test("requests the progress every few seconds and reports it", async () => {
    const { updates, requests, waits } = watchOf({
      progress: [progressWith(), progressWith({ pipes: { total: 3, updated: 3 } })],
    });
    expect(await take(updates, 2)).toMatchObject([
      { view: { service: "s", state: "propagating", desired: sizeOfCores(4), pipes: { updated: 1 } } },
      { view: { pipes: { updated: 3 } } },
    ]);
    expect(requests).toEqual(["/progress", "/progress"]);
    expect(waits).toEqual([2500]);
  });

  test("takes a boost that this command ended for another one only at the second read in a row", async () => {
    const size = { replicaCpuMillicores: 16_000, replicaMemoryGb: 64 };
    const boost = { ...size, until: UNTIL, remainingSeconds: 60 };
    const boosted = progressWith({ state: "scaled", requestId: "boost", boost });
    const ended = progressWith();
    const { updates, requests } = watchOf(
      { progress: [boosted, ended, boosted, boosted] },
      { hasEndedBoost: true },
    );
    expect(await take(updates, 2)).toMatchObject([
      { view: { state: "propagating" } },
      { view: { state: "scaled" } },
    ]);
    expect(requests).toHaveLength(4);
  });

  test("names the failed pipes, their reasons and the next attempt", async () => {
    const failure = { pipe: "orders", reason: "Refused", message: "It may not.", attempts: 1 };
    const nextRetryAt = "2026-01-31T12:05:00.000Z";
    const { updates } = watchOf({
      progress: [progressWith({ state: "failed", failures: [{ ...failure, nextRetryAt }] })],
    });
    expect(await take(updates, 1)).toMatchObject([
      {
        view: {
          state: "failed",
          pending: [{ name: "orders", state: "Failed", message: "It may not." }],
          retryAt: new Date(nextRetryAt),
        },
      },
    ]);
  });

  test("shows a state from a later API version as unknown", async () => {
    const { updates } = watchOf({ progress: [progressWith({ state: "dancing" })] });
    expect(await take(updates, 1)).toMatchObject([{ view: { state: "unknown" } }]);
  });

  test("reports transient errors and retries with backoff", async () => {
    const { updates, waits } = watchOf({
      progress: [
        progressWith(),
        new NoResponse("It is gone."),
        refusal(503, 7000),
        refusal(500),
        refusal(429, 30_000),
        new NoResponse("It is gone."),
        progressWith(),
        new NoResponse("It is gone."),
        progressWith(),
      ],
    });
    const all = await take(updates, 9);
    expect(all.map((each) => ("problem" in each ? each.problem : "view"))).toEqual([
      "view",
      "It is gone. Trying again.",
      "It is refused with 503. Trying again.",
      "It is refused with 500. Trying again.",
      "It is refused with 429. Trying again.",
      "It is gone. Trying again.",
      "view",
      "It is gone. Trying again.",
      "view",
    ]);
    expect(waits).toEqual([2500, 2500, 7000, 7500, 30_000, 10_000, 2500, 2500]);
  });

  test("waits for at most a minute before it tries again, whatever a gateway names", async () => {
    const { updates, waits } = watchOf({ progress: [refusal(503, 86_400_000), progressWith()] });
    expect(await take(updates, 2)).toMatchObject([{ problem: expect.any(String) }, { view: {} }]);
    expect(waits).toEqual([60_000]);
  });

  test.each([
    ["a size was requested", { requested: OURS }],
    ["a boost was started", { requested: { ...OURS, until: UNTIL } }],
    ["a boost was ended", { hasEndedBoost: true }],
    ["nothing but the organization was read", {}],
  ])("retries also the first read after %s", async (_, options) => {
    const errors = [refusal(429, 3000), refusal(503), new NoResponse("It is gone.")];
    const { updates } = watchOf({ progress: [...errors, progressWith()] }, options);
    const all = await take(updates, 4);
    expect(all.map((each) => "problem" in each)).toEqual([true, true, true, false]);
  });

  test.each([
    ["that does not know the service", [refusal(404)]],
    ["that no longer accepts the key", [progressWith(), refusal(401)]],
    ["that no longer knows the service", [progressWith(), refusal(404)]],
  ])("ends with the error of an API %s", async (_, progress) => {
    const { updates } = watchOf({ progress });
    await expect(take(updates, 3)).rejects.toThrow(progress.at(-1));
  });

  test("waits for two equal responses before it reports that another request superseded its own", async () => {
    const { updates, requests } = watchOf({
      progress: [progressWith(), OTHERS, progressWith(), OTHERS, OTHERS],
    });
    expect(await take(updates, 2)).toMatchObject([
      { view: { requestId: "ours" } },
      { view: { requestId: "ours" } },
    ]);
    await expect(updates.next()).rejects.toThrow(
      "Another request, theirs, set another size (8 cpu / 32 Gi): your request was superseded. To watch the other one: pipe-scaling scaling get s --watch",
    );
    expect(requests.length).toBe(5);
  });

  test("reports a change that was made without a request", async () => {
    const { requestId: _, ...edited } = Object(OTHERS);
    const { updates } = watchOf({ progress: [edited] });
    await expect(updates.next()).rejects.toThrow("A change without a request set another size");
  });

  test("ignores another request for the same size, and a tier that limits its size", async () => {
    const limit = { replicaCpuMillicores: 2000, replicaMemoryGb: 8, source: "TierLimit" };
    const { updates } = watchOf({
      progress: [progressWith({ requestId: "theirs" }), progressWith({ desired: limit, state: "scaled" })],
    });
    expect(await take(updates, 2)).toMatchObject([
      { view: { requestId: "theirs" } },
      { view: { state: "scaled", source: "TierLimit" } },
    ]);
  });

  test("explains during a boost that the size of its request applies after it", async () => {
    const eight = { replicaCpuMillicores: 8000, replicaMemoryGb: 32 };
    const boost = { ...eight, until: UNTIL, remainingSeconds: 60 };
    const desired = { ...eight, source: "Boost" };
    const { updates } = watchOf({ progress: [progressWith({ requestId: "boost", desired, boost })] });
    await expect(updates.next()).rejects.toThrow(
      `A boost is in effect until ${UNTIL}, so the pipes get 4 cpu / 16 Gi after it. To end it now: pipe-scaling scaling boost s --end`,
    );
  });

  test("reports the end of its boost if it comes before every pipe has its size", async () => {
    const requested = { ...OURS, until: UNTIL };
    const { updates } = watchOf({ progress: [OTHERS] }, { requested });
    await expect(updates.next()).rejects.toThrow(
      `The boost ended at ${UNTIL}, before every pipe had its size. To watch the return to the requested size: pipe-scaling scaling get s --watch`,
    );
  });

  test("follows the clock of the API, because that of this machine can be wrong", async () => {
    const requested = { ...OURS, until: UNTIL };
    const { updates } = watchOf({ progress: [OTHERS] }, { requested, now: "2026-01-31T19:59:59.000Z" });
    await expect(updates.next()).rejects.toThrow("Another request, theirs, set another size (8 cpu / 32 Gi)");
  });

  test("is never superseded if it did not request a size", async () => {
    const { updates } = watchOf({ progress: [progressWith(), OTHERS] }, { requested: undefined });
    expect(await take(updates, 2)).toMatchObject([
      { view: {} },
      { view: { requestId: "theirs", state: "scaled" } },
    ]);
  });
});

test("a watch shows how many pipes were resized in place, and why others restarted", async () => {
  const fallbacks = [{ pipe: "pipe-a", reason: "Deferred", message: "No room." }];
  const pipes = { total: 3, updated: 3, inPlace: 2 };
  const { updates } = watchOf({ progress: [progressWith({ pipes, fallbacks }), progressWith()] });
  expect(await take(updates, 2)).toMatchObject([
    { view: { pipes, fallbacks } },
    { view: { pipes: { total: 3, updated: 1 }, fallbacks: [] } },
  ]);
});
