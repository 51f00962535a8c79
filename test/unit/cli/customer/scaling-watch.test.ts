import { describe, expect, test } from "vitest";
import type { ApiClient } from "../../../../src/cli/customer/client.ts";
import { ErrorResponse, NoResponse } from "../../../../src/cli/customer/errors.ts";
import { progress } from "../../../../src/cli/customer/responses.ts";
import { watchScaling } from "../../../../src/cli/customer/scaling-watch.ts";
import { poll, type Update } from "../../../../src/cli/view/poll.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";

const PATH = "/v1/organizations/o/services/s/pipesCdcScaling";
const OURS = { size: sizeOfCores(4), requestId: "ours" };

type Told = object | Error;

function refusal(status: number, retryAfterMs?: number): ErrorResponse {
  return new ErrorResponse(`It is refused with ${status}.`, status, retryAfterMs);
}

function told(changes: object = {}): object {
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

const OTHERS = told({
  state: "scaled",
  requestId: "theirs",
  desired: { replicaCpuMillicores: 8000, replicaMemoryGb: 32, source: "Spec" },
});

/** A watch of an API that sends these responses one after the other, and then the last of them again. */
function watchOf(responses: { progress?: readonly Told[] }, { asks: hasRequested = true } = {}) {
  const left = [...(responses.progress ?? [])];
  const asks: string[] = [];
  const waits: number[] = [];
  const requestOnce: ApiClient["requestOnce"] = async ({ path }, schema) => {
    asks.push(path.slice(PATH.length));
    const response = (left.length > 1 ? left.shift() : left[0]) ?? new Error("no response");
    if (response instanceof Error) throw response;
    progress.parse(response);
    return { requestId: "r", result: schema.parse(response) };
  };
  const access = { url: "https://api", authorization: "", keySuffix: "", ca: undefined, profile: undefined };
  const requested = hasRequested ? OURS : undefined;
  const options = watchScaling({ api: { requestOnce, access }, path: PATH, service: "s", requested });
  const wait = async (ms: number) => void waits.push(ms);
  const news = poll({ ...options, wait }, new AbortController().signal);
  return { news, asks, waits };
}

async function take(news: AsyncGenerator<Update>, count: number): Promise<Update[]> {
  const taken: Update[] = [];
  while (taken.length < count) {
    const { done, value } = await news.next();
    if (done) throw new Error("the news have ended");
    taken.push(value);
  }
  return taken;
}

describe("a watch through the API", () => {
  test("requests the progress every few seconds, and reports it", async () => {
    const { news, asks, waits } = watchOf({ progress: [told(), told({ pipes: { total: 3, updated: 3 } })] });
    expect(await take(news, 2)).toMatchObject([
      { view: { service: "s", state: "propagating", desired: sizeOfCores(4), pipes: { updated: 1 } } },
      { view: { pipes: { updated: 3 } } },
    ]);
    expect(asks).toEqual(["/progress", "/progress"]);
    expect(waits).toEqual([2500]);
  });

  test("names the failed pipes and the reasons", async () => {
    const failure = { pipe: "orders", reason: "Refused", message: "It may not.", attempts: 1 };
    const { news } = watchOf({ progress: [told({ state: "failed", failures: [failure] })] });
    expect(await take(news, 1)).toMatchObject([
      { view: { state: "failed", pending: [{ name: "orders", state: "Failed", message: "It may not." }] } },
    ]);
  });

  test("shows a state of a later version of the API as unknown", async () => {
    const { news } = watchOf({ progress: [told({ state: "dancing" })] });
    expect(await take(news, 1)).toMatchObject([{ view: { state: "unknown" } }]);
  });

  test("survives transient errors, reports them, and retries less and less often", async () => {
    const { news, waits } = watchOf({
      progress: [
        told(),
        new NoResponse("It is gone."),
        refusal(503, 7000),
        refusal(500),
        refusal(429, 30_000),
        new NoResponse("It is gone."),
        told(),
        new NoResponse("It is gone."),
        told(),
      ],
    });
    const all = await take(news, 9);
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

  test.each([
    ["that never responded", [new NoResponse("It is gone.")], false],
    ["that no longer accepts the key", [told(), refusal(401)], true],
    ["that no longer knows the service", [told(), refusal(404)], true],
  ])("ends at an API %s", async (_, progress, asks) => {
    const { news } = watchOf({ progress }, { asks });
    await expect(take(news, 3)).rejects.toThrow(progress.at(-1));
  });

  test("reports the outcome of another request only after two equal responses", async () => {
    const { news, asks } = watchOf({ progress: [told(), OTHERS, told(), OTHERS, OTHERS] });
    expect(await take(news, 2)).toMatchObject([
      { view: { requestId: "ours" } },
      { view: { requestId: "ours" } },
    ]);
    await expect(news.next()).rejects.toThrow(
      "Another request, theirs, set another size (8 cpu / 32 Gi): your request was superseded. To watch the other one: pipe-scaling scaling get s --watch",
    );
    expect(asks.length).toBe(5);
  });

  test("reports a change without a request", async () => {
    const { requestId: _, ...edited } = Object(OTHERS);
    const { news } = watchOf({ progress: [edited] });
    await expect(news.next()).rejects.toThrow("A change without a request set another size");
  });

  test("ignores another request for the same size, and a tier that limits its size", async () => {
    const limit = { replicaCpuMillicores: 2000, replicaMemoryGb: 8, source: "TierLimit" };
    const { news } = watchOf({
      progress: [told({ requestId: "theirs" }), told({ desired: limit, state: "scaled" })],
    });
    expect(await take(news, 2)).toMatchObject([
      { view: { requestId: "theirs" } },
      { view: { state: "scaled", source: "TierLimit" } },
    ]);
  });

  test("is never superseded if it requested nothing", async () => {
    const { news } = watchOf({ progress: [told(), OTHERS] }, { asks: false });
    expect(await take(news, 2)).toMatchObject([
      { view: {} },
      { view: { requestId: "theirs", state: "scaled" } },
    ]);
  });
});

test("a watch shows how many pipes were resized in place, and why others restarted", async () => {
  const fallbacks = [{ pipe: "pipe-a", reason: "Deferred", message: "No room." }];
  const pipes = { total: 3, updated: 3, inPlace: 2 };
  const { news } = watchOf({ progress: [told({ pipes, fallbacks }), told()] });
  expect(await take(news, 2)).toMatchObject([
    { view: { pipes, fallbacks } },
    { view: { pipes: { total: 3, updated: 1 }, fallbacks: [] } },
  ]);
});
