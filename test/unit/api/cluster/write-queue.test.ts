import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { WriteQueue } from "../../../../src/api/cluster/write-queue.ts";
import { ApiError } from "../../../../src/api/errors.ts";
import { FakeClock, settled } from "../../../support/fakes/fake-clock.ts";

const MAX_WAITING = 256;
const MAX_WAIT_MS = 20_000;

interface Request {
  /** Position among all requests. */
  readonly number: number;
  readonly object: string;
  readonly coalesceKey: string | undefined;
  /** Number of the write whose result the caller got, or the error. */
  outcome: number | Error | undefined;
}

/** A queue whose writes run until the test ends them. */
class HeldQueue {
  readonly clock = new FakeClock();
  readonly queue = new WriteQueue<number>(this.clock);
  readonly requests: Request[] = [];
  /** Writes in the order in which they began. */
  readonly begun: Request[] = [];
  /** The largest number of writes to one object at the same time. */
  maxInFlight = 0;
  readonly #revoked = new Set<Request>();
  readonly #inFlight = new Map<Request, PromiseWithResolvers<number>>();

  request(object: string, coalesceKey?: string): Request {
    const request: Request = { number: this.requests.length, object, coalesceKey, outcome: undefined };
    this.requests.push(request);
    this.queue
      .run(object, {
        permit: () => this.#permit(request),
        write: (permit) => this.#write(request, permit),
        ...(coalesceKey === undefined ? {} : { coalesceKey }),
      })
      .then(
        (written) => {
          request.outcome = written;
        },
        (error: Error) => {
          request.outcome = error;
        },
      );
    return request;
  }

  /** Ends the write in flight to an object, with an error if one is given. */
  async end(object: string, error?: Error): Promise<void> {
    const [request, promise] = [...this.#inFlight].find(([each]) => each.object === object) ?? [];
    if (request && promise) {
      this.#inFlight.delete(request);
      if (error) promise.reject(error);
      else promise.resolve(request.number);
    }
    await settled();
  }

  /** Ends every write, including those that begin meanwhile. */
  async endAll(): Promise<void> {
    for (let object = this.#next(); object !== undefined; object = this.#next()) await this.end(object);
  }

  #next(): string | undefined {
    return [...this.#inFlight.keys()][0]?.object;
  }

  /** From now on, the caller of the request may not write any more. */
  revoke(request: Request): void {
    this.#revoked.add(request);
  }

  #permit(request: Request): void {
    if (this.#revoked.has(request)) throw new Error(`request ${request.number} is not permitted`);
  }

  async #write(request: Request, permit: () => void): Promise<number> {
    permit();
    this.begun.push(request);
    const promise = Promise.withResolvers<number>();
    this.#inFlight.set(request, promise);
    const inFlight = [...this.#inFlight.keys()].filter(({ object }) => object === request.object).length;
    this.maxInFlight = Math.max(this.maxInFlight, inFlight);
    return await promise.promise;
  }
}

let held: HeldQueue;

beforeEach(() => {
  held = new HeldQueue();
});

function fail(): never {
  throw new Error("there is no such request");
}

function numbersOf(requests: readonly Request[]): number[] {
  return requests.map(({ number }) => number);
}

describe("the write queue", () => {
  it("executes writes to one object one at a time, in the order of the requests", async () => {
    for (let count = 0; count < 5; count += 1) held.request("a");
    expect(numbersOf(held.begun)).toEqual([0]);
    await held.end("a");
    expect(numbersOf(held.begun)).toEqual([0, 1]);
    await held.endAll();
    expect(numbersOf(held.begun)).toEqual([0, 1, 2, 3, 4]);
    expect(held.requests.map(({ outcome }) => outcome)).toEqual([0, 1, 2, 3, 4]);
  });

  it("executes writes to different objects concurrently", () => {
    held.request("a");
    held.request("b");
    expect(numbersOf(held.begun)).toEqual([0, 1]);
  });

  it("executes only the last of the waiting writes with the same coalesce key", async () => {
    held.request("a", "4 cores");
    const waiting = [1, 2, 3].map(() => held.request("a", "8 cores"));
    await held.endAll();
    expect(numbersOf(held.begun)).toEqual([0, 3]);
    expect(waiting.map(({ outcome }) => outcome)).toEqual([3, 3, 3]);
  });

  it("does not coalesce writes if another write is between them, because the order would change", async () => {
    held.request("a", "1 core");
    for (const key of ["8 cores", "4 cores", "8 cores"]) held.request("a", key);
    await held.endAll();
    expect(numbersOf(held.begun)).toEqual([0, 1, 2, 3]);
  });

  it("does not coalesce writes without a key", async () => {
    for (let count = 0; count < 4; count += 1) held.request("a");
    await held.endAll();
    expect(numbersOf(held.begun)).toEqual([0, 1, 2, 3]);
  });

  it("does not coalesce a new write with the one in flight, which may be based on older state", async () => {
    held.request("a", "8 cores");
    held.request("a", "8 cores");
    await held.endAll();
    expect(numbersOf(held.begun)).toEqual([0, 1]);
  });

  it("rejects a write to an object with 256 waiting writes, but accepts writes to others", async () => {
    for (let count = 0; count <= MAX_WAITING; count += 1) held.request("a");
    const refused = held.request("a");
    held.request("b");
    await settled();
    expect(refused.outcome).toMatchObject({ reason: "QueueFull" });
    expect(held.requests.filter(({ outcome }) => outcome !== undefined)).toEqual([refused]);
    await held.endAll();
    expect(held.begun).not.toContain(refused);
    expect(held.begun).toHaveLength(MAX_WAITING + 2);
  });

  it("rejects a write that has waited for 20 s, and never executes it", async () => {
    held.request("a");
    const waiting = held.request("a");
    await held.clock.advance(MAX_WAIT_MS - 1);
    expect(waiting.outcome).toBeUndefined();
    await held.clock.advance(1);
    expect(waiting.outcome).toMatchObject({ reason: "QueueSlow" });
    const later = held.request("a");
    await held.endAll();
    expect(held.begun).not.toContain(waiting);
    expect(later.outcome).toBe(later.number);
  });

  it("does not count the duration of a write as waiting time", async () => {
    held.request("a");
    const waiting = held.request("a");
    await held.clock.advance(MAX_WAIT_MS - 1);
    await held.end("a");
    await held.clock.advance(MAX_WAIT_MS);
    await held.endAll();
    expect(waiting.outcome).toBe(waiting.number);
  });

  it("returns the error of a failed write to all its callers, and executes the next write", async () => {
    const failed = held.request("a");
    const coalesced = [held.request("a", "8 cores"), held.request("a", "8 cores")];
    const last = held.request("a");
    const [first, second] = [new Error("first"), new Error("second")];
    await held.end("a", first);
    await held.end("a", second);
    await held.endAll();
    expect(failed.outcome).toBe(first);
    expect(coalesced.map(({ outcome }) => outcome)).toEqual([second, second]);
    expect(last.outcome).toBe(last.number);
  });

  it("does not execute a write whose caller may not write any more at its turn", async () => {
    held.request("a");
    const revoked = held.request("a");
    const last = held.request("a");
    held.revoke(revoked);
    await held.endAll();
    expect(numbersOf(held.begun)).toEqual([0, 2]);
    expect(revoked.outcome).toEqual(new Error("request 1 is not permitted"));
    expect(last.outcome).toBe(2);
  });

  it("executes the last of the coalesced writes whose caller may still write", async () => {
    held.request("a");
    const waiting = [1, 2, 3, 4].map(() => held.request("a", "8 cores"));
    for (const at of [0, 3]) held.revoke(waiting[at] ?? fail());
    await held.endAll();
    expect(numbersOf(held.begun)).toEqual([0, 3]);
    expect(waiting.map(({ outcome }) => outcome)).toEqual([
      new Error("request 1 is not permitted"),
      3,
      3,
      new Error("request 4 is not permitted"),
    ]);
  });

  it("executes another coalesced write if the caller of the first loses the permission between attempts", async () => {
    const queue = new WriteQueue<string>(held.clock);
    const denied = new Error("denied");
    let attempts = 0;
    const permit = () => undefined;
    const outcomes = Promise.allSettled([
      queue.run("a", { permit, write: async () => "before" }),
      queue.run("a", { permit, write: async () => "made", coalesceKey: "8 cores" }),
      queue.run("a", {
        permit: () => {
          attempts += 1;
          if (attempts > 1) throw denied;
        },
        write: async (permitted) => {
          permitted();
          permitted();
          return "not made";
        },
        coalesceKey: "8 cores",
      }),
    ]);
    expect(await outcomes).toEqual([
      { status: "fulfilled", value: "before" },
      { status: "fulfilled", value: "made" },
      { status: "rejected", reason: denied },
    ]);
  });

  it("executes the next write after one that throws synchronously", async () => {
    const queue = new WriteQueue<string>(held.clock);
    const failAtOnce = () => {
      throw new Error("at once");
    };
    const permit = () => undefined;
    const outcomes = await Promise.allSettled([
      queue.run("a", { permit, write: failAtOnce }),
      queue.run("a", { permit, write: failAtOnce }),
      queue.run("a", { permit, write: async () => "made" }),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected", "fulfilled"]);
    expect(queue.size).toBe(0);
  });

  it("forgets an object when its last write ends, for any number of objects", async () => {
    for (let count = 0; count < 1000; count += 1) {
      held.request(String(count));
      held.request(String(count));
    }
    expect(held.queue.size).toBe(1000);
    await held.endAll();
    expect(held.queue.size).toBe(0);
  });
});

type Step =
  | { readonly what: "request"; readonly object: string; readonly coalesceKey: string | undefined }
  | { readonly what: "end"; readonly object: string; readonly fails: boolean }
  | { readonly what: "pass"; readonly ms: number };

const object = fc.constantFrom("a", "b");
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      what: fc.constant("request"),
      object,
      coalesceKey: fc.constantFrom(undefined, "4 cores", "8 cores"),
    }),
  },
  { weight: 3, arbitrary: fc.record({ what: fc.constant("end"), object, fails: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constant("pass"), ms: fc.nat(MAX_WAIT_MS) }) },
);

async function take(story: HeldQueue, next: Step): Promise<void> {
  if (next.what === "request") story.request(next.object, next.coalesceKey);
  else if (next.what === "end") await story.end(next.object, next.fails ? new Error("failed") : undefined);
  else await story.clock.advance(next.ms);
}

describe("the write queue with random writes, errors and timeouts", () => {
  it("executes writes in the order of the requests, and coalesces only consecutive equal ones", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 80 }), async (steps) => {
        const story = new HeldQueue();
        for (const each of steps) await take(story, each);
        await story.endAll();

        expect(story.maxInFlight).toBeLessThanOrEqual(1);
        expect(story.queue.size).toBe(0);
        for (const name of ["a", "b"]) expectInOrder(story, name);
      }),
    );
  });
});

/** The queue had no room for the request, or its wait took too long. */
function isRejected(outcome: unknown): boolean {
  return outcome instanceof ApiError && outcome.status === 503;
}

function expectInOrder(story: HeldQueue, name: string): void {
  const begun = numbersOf(story.begun.filter((request) => request.object === name));
  expect(begun).toEqual(begun.toSorted((one, other) => one - other));
  expect(new Set(begun).size).toBe(begun.length);
  const requests = story.requests.filter((request) => request.object === name);
  for (const request of requests) {
    const { number, coalesceKey, outcome } = request;
    expect(outcome).toBeDefined();
    if (isRejected(outcome)) expect(begun).not.toContain(number);
    if (typeof outcome !== "number" || outcome === number) continue;
    // A later write replaced it, and all writes between them had the same effect.
    expect(begun).not.toContain(number);
    expect(outcome).toBeGreaterThan(number);
    const between = requests.filter((each) => each.number > number && each.number <= outcome);
    const counted = between.filter((each) => !isRejected(each.outcome));
    expect(new Set(counted.map((each) => each.coalesceKey))).toEqual(new Set([coalesceKey]));
  }
}
