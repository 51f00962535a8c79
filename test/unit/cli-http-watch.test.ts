import { describe, expect, test } from "vitest";
import { progress, size } from "../../src/cli/customer/answers.ts";
import type { ApiClient } from "../../src/cli/customer/client.ts";
import { NoAnswer } from "../../src/cli/customer/no-answer.ts";
import { Refusal } from "../../src/cli/customer/refusal.ts";
import { ScalingWatch } from "../../src/cli/customer/scaling-watch.ts";
import type { News } from "../../src/cli/view/follow.ts";
import { sizeOfCores } from "../../src/domain/size.ts";
import { VirtualClock } from "../gen/clock.ts";

const PATH = "/v1/organizations/o/services/s/pipesCdcScaling";
const OURS = { size: sizeOfCores(4), requestId: "ours" };

type Told = object | Error;

function refusal(status: number, retryAfterMs?: number): Refusal {
  return new Refusal(`It is refused with ${status}.`, { status, retryAfterMs });
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

/** A watch of an API that gives these answers to its two questions, each in turn, the last of them for ever. */
function watchOf(
  answers: { progress?: readonly Told[]; size?: readonly Told[]; restMs?: number },
  { asks: hasAsked = true } = {},
) {
  const clock = new VirtualClock();
  const left = { progress: [...(answers.progress ?? [])], size: [...(answers.size ?? [])] };
  const asks: string[] = [];
  const waits: number[] = [];
  const next = (of: Told[]): Told => (of.length > 1 ? of.shift() : of[0]) ?? new Error("nothing to answer");
  const askOnce: ApiClient["askOnce"] = async ({ path }, schema) => {
    asks.push(path.slice(PATH.length));
    const isProgress = path.endsWith("/progress");
    const answer = next(isProgress ? left.progress : left.size);
    if (answer instanceof Error) throw answer;
    // Through the schema that it is asked with, as the client does.
    (isProgress ? progress : size).parse(answer);
    return { requestId: "r", result: schema.parse(answer), restMs: answers.restMs ?? 0 };
  };
  const access = { url: "https://api", authorization: "", keySuffix: "", ca: undefined, profile: undefined };
  const watch = new ScalingWatch({
    api: { askOnce, access },
    path: PATH,
    service: "s",
    asked: hasAsked ? OURS : undefined,
    clock,
    async wait(ms) {
      waits.push(ms);
      await clock.advance(ms);
    },
  });
  return { watch, news: watch.news(new AbortController().signal), asks, waits };
}

async function take(news: AsyncGenerator<News>, count: number): Promise<News[]> {
  const taken: News[] = [];
  while (taken.length < count) {
    const { done, value } = await news.next();
    if (done) throw new Error("the news have ended");
    taken.push(value);
  }
  return taken;
}

describe("a watch through the API", () => {
  test("asks every few seconds, and tells what it is told", async () => {
    const { news, asks, waits } = watchOf({ progress: [told(), told({ pipes: { total: 3, updated: 3 } })] });
    expect(await take(news, 2)).toMatchObject([
      { view: { service: "s", state: "propagating", wanted: sizeOfCores(4), pipes: { updated: 1 } } },
      { view: { pipes: { updated: 3 }, progressedAt: expect.any(Date) } },
    ]);
    expect(asks).toEqual(["/progress", "/progress"]);
    expect(waits).toEqual([2500]);
  });

  test("names the pipes that failed, and why", async () => {
    const failure = { pipe: "orders", reason: "Refused", message: "It may not.", attempts: 1 };
    const { news } = watchOf({ progress: [told({ state: "failed", failures: [failure] })] });
    expect(await take(news, 1)).toMatchObject([
      { view: { state: "failed", lines: [{ name: "orders", state: "failed", why: "It may not." }] } },
    ]);
  });

  test("knows of nothing where no pipe is counted yet, and of no state that is new to it", async () => {
    const { news } = watchOf({ progress: [told({ pipes: undefined }), told({ state: "dancing" })] });
    expect(await take(news, 2)).toMatchObject([
      { view: { state: "unknown" } },
      { view: { state: "unknown" } },
    ]);
  });

  test("rests for as long as the limit asks", async () => {
    const { news, waits } = watchOf({ progress: [told()], restMs: 9000 });
    await take(news, 2);
    expect(waits).toEqual([9000]);
  });

  test("outlasts what passes, telling it, less and less often", async () => {
    const { news, waits } = watchOf({
      progress: [
        told(),
        new NoAnswer("It is gone."),
        refusal(503, 7000),
        refusal(500),
        refusal(429, 30_000),
        new NoAnswer("It is gone."),
        told(),
        new NoAnswer("It is gone."),
        told(),
      ],
    });
    const all = await take(news, 9);
    expect(all.map((each) => ("trouble" in each ? each.trouble : "view"))).toEqual([
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
    ["that never answered", [new NoAnswer("It is gone.")], false],
    ["that does not take the key any more", [told(), refusal(401)], true],
    ["whose service is gone", [told(), refusal(404)], true],
  ])("ends at an API %s", async (_, progress, asks) => {
    const { news } = watchOf({ progress }, { asks });
    await expect(take(news, 3)).rejects.toThrow(progress.at(-1));
  });

  test("does not take the outcome of another request for its own, and believes what it is told twice", async () => {
    const { news, asks } = watchOf({ progress: [told(), OTHERS, told(), OTHERS, OTHERS] });
    expect(await take(news, 2)).toMatchObject([
      { view: { requestId: "ours" } },
      { view: { requestId: "ours" } },
    ]);
    await expect(news.next()).rejects.toThrow(
      "Another request, theirs, has asked for another size since (8 cpu / 32 Gi): yours was superseded. `pipe-scaling scaling get s --watch` shows what becomes of that.",
    );
    expect(asks.length).toBe(5);
  });

  test("names a change that came by no request", async () => {
    const { requestId: _, ...edited } = Object(OTHERS);
    const { news } = watchOf({ progress: [edited] });
    await expect(news.next()).rejects.toThrow("A change that came by no request has asked for another size");
  });

  test("does not mind another request for the same size, nor a tier's limit to its own", async () => {
    const limit = { replicaCpuMillicores: 2000, replicaMemoryGb: 8, source: "TierLimit" };
    const { news } = watchOf({
      progress: [told({ requestId: "theirs" }), told({ desired: limit, state: "scaled" })],
    });
    expect(await take(news, 2)).toMatchObject([
      { view: { requestId: "theirs" } },
      { view: { state: "scaled", from: "TierLimit" } },
    ]);
  });

  test("has nothing to be superseded where nothing was asked for", async () => {
    const { news } = watchOf({ progress: [told(), OTHERS] }, { asks: false });
    expect(await take(news, 2)).toMatchObject([
      { view: {} },
      { view: { requestId: "theirs", state: "scaled" } },
    ]);
  });
});

describe("a watch of an older API, which has no progress", () => {
  const [TWO, FOUR] = [
    { replicaCpuMillicores: 2000, replicaMemoryGb: 8 },
    { replicaCpuMillicores: 4000, replicaMemoryGb: 16 },
  ];

  test("goes on until all pipes have what was asked for", async () => {
    const { news, asks } = watchOf({ progress: [refusal(404)], size: [TWO, refusal(503, 5000), FOUR] });
    expect(await take(news, 3)).toMatchObject([
      {
        view: {
          state: "unknown",
          wanted: sizeOfCores(4),
          effective: sizeOfCores(2),
          message: expect.stringContaining("This API is of an older version and does not tell how far it is"),
        },
      },
      { trouble: "It is refused with 503. Trying again." },
      { view: { state: "scaled", effective: sizeOfCores(4) } },
    ]);
    expect(asks).toEqual(["/progress", "", "", ""]);
  });

  test("cannot be, where nothing was asked for", async () => {
    const { news } = watchOf({ progress: [refusal(404)], size: [TWO] }, { asks: false });
    await expect(news.next()).rejects.toThrow(
      "The API at https://api is of an older version, which does not tell how far a rescale is: it cannot be watched.",
    );
  });

  test("is none where it is the service that is not there", async () => {
    const { news } = watchOf({ progress: [refusal(404)], size: [refusal(404)] }, { asks: false });
    await expect(news.next()).rejects.toThrow("It is refused with 404.");
  });
});
