import { describe, expect, it, onTestFinished, vi } from "vitest";
import { abortable } from "../../../src/kube/abortable.ts";
import type { KubeRequest } from "../../../src/kube/client.ts";
import { KubeApiError, KubeUnreachableError } from "../../../src/kube/errors.ts";
import { createLogger } from "../../../src/telemetry/log.ts";
import { type Access, metricsAccess } from "../../../src/telemetry/metrics-access.ts";
import { FakeClock, settled } from "../../support/fakes/fake-clock.ts";

const USER = { username: "prometheus", uid: "1", groups: ["monitoring"], extra: { node: ["a"] } };
const AUTHENTICATED = { authenticated: true, user: USER };

interface Reviewer {
  readonly token?: () => unknown;
  readonly access?: () => unknown;
}

/** Access to the metrics with these review results; by default, every token and user is allowed. */
function start({ token = () => AUTHENTICATED, access = () => ({ allowed: true }) }: Reviewer = {}) {
  const clock = new FakeClock();
  const requests: KubeRequest[] = [];
  const log: Record<string, unknown>[] = [];
  const control = metricsAccess(
    { metricsAuthentication: true },
    {
      client: {
        json: async <T>(request: KubeRequest): Promise<T> => {
          requests.push(request);
          const { path, signal = new AbortController().signal } = request;
          const review = path.endsWith("/tokenreviews") ? token : access;
          // The code under test must handle any response of a server.
          return { status: await abortable(Promise.resolve(review()), signal) } as T;
        },
      },
      monotonic: () => clock.monotonic(),
      log: createLogger("info", "test", { write: (line) => log.push(JSON.parse(line)) }),
    },
  );
  if (!control) throw new Error("no access control");
  const check = (authorization?: string, address?: string): Promise<Access> =>
    control.check(authorization, address);
  return { check, clock, requests, log };
}

const TOKEN = "Bearer secret-token";

describe("access to the metrics", () => {
  it("is unrestricted if authentication is disabled", () => {
    const client = { json: () => Promise.reject(new Error("unused")) };
    const log = createLogger("info", "test", { write: () => undefined });
    const options = { client, monotonic: () => 0, log };
    expect(metricsAccess({ metricsAuthentication: false }, options)).toBeUndefined();
  });

  it("is allowed for a user that the API server authenticates and authorizes", async () => {
    const { check, requests } = start();
    expect(await check(TOKEN)).toBe("allowed");
    expect(requests.map(({ method, path, body }) => ({ method, path, body }))).toEqual([
      {
        method: "POST",
        path: "/apis/authentication.k8s.io/v1/tokenreviews",
        body: {
          apiVersion: "authentication.k8s.io/v1",
          kind: "TokenReview",
          spec: { token: "secret-token" },
        },
      },
      {
        method: "POST",
        path: "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        body: {
          apiVersion: "authorization.k8s.io/v1",
          kind: "SubjectAccessReview",
          spec: {
            user: "prometheus",
            uid: "1",
            groups: ["monitoring"],
            extra: { node: ["a"] },
            nonResourceAttributes: { path: "/metrics", verb: "get" },
          },
        },
      },
    ]);
  });

  it.each([undefined, "", "secret-token", "Basic secret-token", "Bearer", "Bearer ", "Bearer two tokens"])(
    "is denied without a review if the Authorization header is %j",
    async (authorization) => {
      const { check, requests } = start();
      expect(await check(authorization)).toBe("unauthenticated");
      expect(requests).toEqual([]);
    },
  );

  it.each(["bearer secret-token", "BEARER  secret-token "])(
    "accepts the Authorization header %j",
    async (authorization) => {
      expect(await start().check(authorization)).toBe("allowed");
    },
  );

  it.each([
    ["has the error of an invalid token", { authenticated: false, error: "invalid bearer token" }],
    ["has no result", {}],
    ["has no status", undefined],
    ["has a user, but no result", { user: USER }],
    ["has a string as its result", { authenticated: "true", user: USER }],
  ])("is denied as unauthenticated if the TokenReview %s", async (_, status) => {
    const { check, requests } = start({ token: () => status });
    expect(await check(TOKEN)).toBe("unauthenticated");
    expect(requests).toHaveLength(1);
  });

  it.each([
    ["denies", { allowed: false, denied: true }],
    ["has no opinion", { allowed: false }],
    ["has no result", {}],
    ["has no status", undefined],
    ["has a string as its result", { allowed: "true" }],
  ])("is denied as forbidden if the SubjectAccessReview %s", async (_, status) => {
    expect(await start({ access: () => status }).check(TOKEN)).toBe("forbidden");
  });

  it("is unknown if the TokenReview has no user name, because an empty user could match anything", async () => {
    const { check, requests } = start({ token: () => ({ authenticated: true, user: { groups: ["a"] } }) });
    expect(await check(TOKEN)).toBe("unknown");
    expect(requests).toHaveLength(1);
  });

  const FAULTS = [
    ["cannot be reached", new KubeUnreachableError("no response")],
    ["is overloaded", new KubeApiError("POST", 429, "")],
    ["fails", new KubeApiError("POST", 500, "")],
    ["forbids the review", new KubeApiError("POST", 403, "")],
  ] as const;

  it.each(FAULTS)("is unknown, and reviewed again, if the API server %s", async (_, error) => {
    for (const review of ["token", "access"] as const) {
      let isFailing = true;
      const status = review === "token" ? AUTHENTICATED : { allowed: true };
      const { check } = start({ [review]: () => (isFailing ? Promise.reject(error) : status) });
      expect(await check(TOKEN)).toBe("unknown");
      expect(await check(TOKEN)).toBe("unknown");
      isFailing = false;
      expect(await check(TOKEN)).toBe("allowed");
    }
  });

  it("logs the first failed review, and another one only after a successful review", async () => {
    let isFailing = true;
    const token = () => {
      if (isFailing) throw new KubeUnreachableError("no response");
      return AUTHENTICATED;
    };
    const { check, log } = start({ token });
    await check(TOKEN);
    await check("Bearer b");
    expect(log.map(({ msg }) => msg)).toEqual(["the token of a request for the metrics cannot be reviewed"]);
    expect(Object.keys(log[0] ?? {})).toEqual(["level", "time", "component", "err", "msg"]);
    expect(JSON.stringify(log)).not.toContain("secret-token");
    isFailing = false;
    await check(TOKEN);
    isFailing = true;
    await check("Bearer b");
    expect(log).toHaveLength(2);
  });
});

describe("the cache of reviews", () => {
  it("keeps an allowed token for a minute", async () => {
    const { check, clock, requests } = start();
    await check(TOKEN);
    await clock.advance(59_999);
    expect(await check(TOKEN)).toBe("allowed");
    expect(requests).toHaveLength(2);
    await clock.advance(1);
    await check(TOKEN);
    expect(requests).toHaveLength(4);
  });

  it.each([
    ["an unauthenticated", { token: () => ({ authenticated: false }) }, 1],
    ["a forbidden", { access: () => ({ allowed: false }) }, 2],
  ])("keeps %s token for 10 seconds", async (_, reviewer, each) => {
    const { check, clock, requests } = start(reviewer);
    const first = await check(TOKEN);
    await clock.advance(9999);
    expect(await check(TOKEN)).toBe(first);
    expect(requests).toHaveLength(each);
    await clock.advance(1);
    await check(TOKEN);
    expect(requests).toHaveLength(2 * each);
  });

  it("keeps an allowed token while a flood of invalid tokens evicts the oldest invalid tokens", async () => {
    let isValid = true;
    const { check, requests } = start({ token: () => ({ authenticated: isValid, user: USER }) });
    await check(TOKEN);
    isValid = false;
    for (let index = 0; index <= 100; index += 1) await check(`Bearer ${index}`);
    const before = requests.length;
    await check(TOKEN);
    await check("Bearer 100");
    await check("Bearer 1");
    expect(requests).toHaveLength(before);
    await check("Bearer 0");
    expect(requests).toHaveLength(before + 1);
  });
});

describe("concurrent requests for the metrics", () => {
  /** Ten addresses, each for ten of a hundred requests. */
  const addressOf = (index: number) => `10.0.0.${index % 10}`;

  /** Starts reviews that wait until the test resolves them. */
  function pending() {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    return { ...start({ token: () => promise }), resolve: () => resolve(AUTHENTICATED) };
  }

  it("share one review if they have the same token", async () => {
    const { check, requests, resolve } = pending();
    const checks = [check(TOKEN), check(TOKEN), check(TOKEN)];
    resolve();
    expect(await Promise.all(checks)).toEqual(["allowed", "allowed", "allowed"]);
    expect(requests).toHaveLength(2);
  });

  it("cause at most four reviews at a time, while other requests wait", async () => {
    const { check, requests, resolve } = pending();
    const checks = Array.from({ length: 6 }, (_, index) => check(`Bearer ${index}`));
    await settled();
    expect(requests).toHaveLength(4);
    resolve();
    expect(new Set(await Promise.all(checks))).toEqual(new Set(["allowed"]));
    expect(requests).toHaveLength(12);
  });

  it("review a token that was allowed a minute ago while 100 others wait, which take no place from it", async () => {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    let review: () => unknown = () => AUTHENTICATED;
    const { check, clock } = start({ token: () => review() });
    expect(await check(TOKEN)).toBe("allowed");
    review = () => promise;
    const others = Array.from({ length: 100 }, (_, index) => check(`Bearer ${index}`, addressOf(index)));
    await settled();
    await clock.advance(60_000);
    review = () => AUTHENTICATED;
    expect(await check("Bearer new")).toBe("unknown");
    expect(await check(TOKEN)).toBe("allowed");
    resolve(AUTHENTICATED);
    await Promise.all(others);
  });

  it("cause at most four reviews at a time of tokens that were allowed a minute ago", async () => {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    let review: () => unknown = () => AUTHENTICATED;
    const { check, clock, requests } = start({ token: () => review() });
    const checkAll = () => Promise.all(Array.from({ length: 6 }, (_, index) => check(`Bearer ${index}`)));
    await checkAll();
    await clock.advance(60_000);
    review = () => promise;
    const before = requests.length;
    const checks = checkAll();
    await settled();
    expect(requests).toHaveLength(before + 4);
    resolve(AUTHENTICATED);
    expect(new Set(await checks)).toEqual(new Set(["allowed"]));
  });

  it("are unknown immediately if 100 tokens are waiting", async () => {
    const { check, resolve } = pending();
    const checks = Array.from({ length: 100 }, (_, index) => check(`Bearer ${index}`, addressOf(index)));
    expect(await check(TOKEN)).toBe("unknown");
    resolve();
    await Promise.all(checks);
    expect(await check(TOKEN)).toBe("allowed");
  });

  it.each([
    ["an address", () => "10.0.0.1", "10.0.0.2"],
    ["an address in both of its forms", (at: number) => ["10.0.0.1", "::ffff:10.0.0.1"][at % 2], "10.0.0.2"],
    ["an IPv6 /64", (at: number) => `fd00:0:0:1::${at}`, "fd00:0:0:2::1"],
    ["a client that has disconnected", () => undefined, "10.0.0.2"],
  ])("of %s take at most ten places, so a new token of another one is reviewed", async (_, flood, other) => {
    const { check, requests, resolve } = pending();
    const checks = Array.from({ length: 10 }, (_item, index) => check(`Bearer ${index}`, flood(index)));
    expect(await check("Bearer 10", flood(10))).toBe("unknown");
    const scrape = check(TOKEN, other);
    const shared = check("Bearer 9", flood(11));
    resolve();
    expect(await scrape).toBe("allowed");
    expect(await shared, "because it needs no place").toBe("allowed");
    await Promise.all(checks);
    expect(requests).toHaveLength(22);
    expect(await check("Bearer 10", flood(10)), "when the places are free again").toBe("allowed");
  });

  it("review a token that was allowed a minute ago while ten others of its address wait", async () => {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    let review: () => unknown = () => AUTHENTICATED;
    const { check, clock } = start({ token: () => review() });
    expect(await check(TOKEN, "10.0.0.1")).toBe("allowed");
    review = () => promise;
    const others = Array.from({ length: 10 }, (_, index) => check(`Bearer ${index}`, "10.0.0.1"));
    await settled();
    await clock.advance(60_000);
    review = () => AUTHENTICATED;
    expect(await check(TOKEN, "10.0.0.1")).toBe("allowed");
    resolve(AUTHENTICATED);
    await Promise.all(others);
  });

  it("are unknown at the deadline of 8 s, even if they are still waiting for a review", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => {
      vi.useRealTimers();
    });
    const { check, requests } = start({ token: () => new Promise(() => undefined) });
    const accesses: string[] = [];
    const checks = Array.from({ length: 6 }, async (_, index) =>
      accesses.push(await check(`Bearer ${index}`)),
    );
    await vi.advanceTimersByTimeAsync(7999);
    expect(accesses).toEqual([]);
    expect(requests).toHaveLength(4);
    await vi.advanceTimersByTimeAsync(1);
    await Promise.all(checks);
    expect(accesses).toEqual(Array(6).fill("unknown"));
  });
});
