import { describe, expect, it, vi } from "vitest";
import { KubeApiError, KubeConfigError, KubeUnreachableError } from "../../../src/kube/errors.ts";
import { retryUntilReachable } from "../../../src/runtime/retry-until-reachable.ts";
import { FakeClock } from "../../support/fakes/fake-clock.ts";

const MINUTE = 60_000;

/** A call that fails with each of these errors in turn, and then succeeds. */
function start(...errors: readonly Error[]) {
  const clock = new FakeClock();
  const stop = new AbortController();
  const calledAtMs: number[] = [];
  const onProblem = vi.fn();
  const call = async () => {
    const error = errors[calledAtMs.length];
    calledAtMs.push(clock.monotonic());
    if (error) throw error;
    return "reached";
  };
  const result = retryUntilReachable(call, { clock, onProblem }, stop.signal);
  result.catch(() => undefined);
  return { clock, stop, calledAtMs, onProblem, result };
}

const refused = () => new KubeUnreachableError("no response", { cause: new Error("ECONNREFUSED") });

describe("a first call to the API server", () => {
  it.each([
    ["gets no response", refused()],
    ["gets 500", new KubeApiError("GET /version", 500, "{}")],
    ["gets 503", new KubeApiError("GET /version", 503, "{}")],
    [
      "gets 403 because the API server does not know its roles yet",
      new KubeApiError(
        "GET /apis",
        403,
        JSON.stringify({
          message:
            'forbidden: User "controller" cannot get path "/apis": RBAC: clusterrole.rbac.authorization.k8s.io "system:discovery" not found',
        }),
      ),
    ],
    ["gets 429", new KubeApiError("GET /version", 429, "{}")],
  ])("is repeated within a second if it %s", async (_, error) => {
    const { clock, onProblem, result } = start(error);
    await clock.advance(1000);
    await expect(result).resolves.toBe("reached");
    expect(onProblem.mock.calls).toEqual([[error]]);
  });

  it("is repeated at least every ten seconds during a long outage, and more often at first", async () => {
    const { clock, calledAtMs } = start(...Array.from({ length: 1000 }, refused));
    await clock.advance(10 * MINUTE);
    const pausesMs = calledAtMs.slice(1).map((atMs, index) => atMs - (calledAtMs[index] ?? 0));
    expect(Math.max(...pausesMs)).toBeLessThanOrEqual(10_000);
    expect(pausesMs.length).toBeLessThan(125);
    expect(calledAtMs.filter((atMs) => atMs < 10_000).length).toBeGreaterThanOrEqual(4);
  });

  it.each([
    ["the configuration is unusable", new KubeConfigError("renew the credentials")],
    [
      "the credentials cannot be read",
      new KubeUnreachableError("not sent", { cause: new KubeConfigError("no token") }),
    ],
    [
      "the certificate is not trusted",
      new KubeUnreachableError("no response", {
        cause: Object.assign(new Error("self-signed certificate"), { code: "DEPTH_ZERO_SELF_SIGNED_CERT" }),
      }),
    ],
    ["the server is no API server", new KubeApiError("GET /version", 404, "<html>")],
  ])("fails at once if %s", async (_, error) => {
    const { calledAtMs, result } = start(error);
    await expect(result).rejects.toBe(error);
    expect(calledAtMs).toHaveLength(1);
  });

  it("ends with the reason of the signal during a pause", async () => {
    const { clock, stop, calledAtMs, result } = start(refused(), refused());
    await clock.advance(100);
    stop.abort(new Error("stopping"));
    await expect(result).rejects.toThrow("stopping");
    await clock.advance(MINUTE);
    expect(calledAtMs).toHaveLength(1);
  });
});
