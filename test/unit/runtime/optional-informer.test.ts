import { describe, expect, it } from "vitest";
import { KubeApiError } from "../../../src/kube/errors.ts";
import { OptionalInformer } from "../../../src/runtime/optional-informer.ts";
import { FakeClock } from "../../support/fakes/fake-clock.ts";

const FORBIDDEN = 'pods is forbidden: User "controller" cannot list resource "pods"';

function setup() {
  const clock = new FakeClock();
  const problems: unknown[] = [];
  let granted = 0;
  const synced = Promise.withResolvers<void>();
  const inner = {
    resource: "pods",
    synced: synced.promise,
    isSynced: false,
    lastContact: 0,
    run: async () => undefined,
  };
  let report: (problem: unknown) => void = () => undefined;
  const informer = new OptionalInformer(
    (onProblem) => {
      report = onProblem;
      return inner;
    },
    {
      clock,
      onProblem: (problem) => problems.push(problem),
      onGranted: () => {
        granted += 1;
      },
    },
  );
  const fail = (code: number, message: string) =>
    report(new KubeApiError("GET /pods", code, JSON.stringify({ message })));
  return { clock, informer, inner, synced, problems, fail, grants: () => granted };
}

describe("an informer of a kind that the process can do without", () => {
  it("is synced with the list, like any other", async () => {
    const { informer, inner, synced } = setup();
    expect(informer.isSynced).toBe(false);
    inner.isSynced = true;
    synced.resolve();
    await informer.synced;
    expect([informer.isSynced, informer.problem]).toEqual([true, undefined]);
  });

  it("counts as synced and in contact without the permission, and has the message", async () => {
    const { clock, informer, problems, fail } = setup();
    await clock.advance(60_000);
    fail(403, FORBIDDEN);
    await informer.synced;
    expect([informer.isSynced, informer.problem]).toEqual([true, FORBIDDEN]);
    expect(informer.lastContact).toBe(clock.monotonic());
    expect(problems).toHaveLength(1);
  });

  it.each([
    [503, "the server is busy"],
    [403, `${FORBIDDEN}: RBAC: [clusterrole.rbac.authorization.k8s.io "controller" not found]`],
  ])("is not synced after another problem: %i %s", (code, message) => {
    const { informer, problems, fail } = setup();
    fail(code, message);
    expect([informer.isSynced, informer.problem]).toEqual([false, undefined]);
    expect(problems).toHaveLength(1);
  });

  it("reports a missing permission once, because it may have been left out on purpose", () => {
    const { problems, fail, informer } = setup();
    fail(403, FORBIDDEN);
    fail(403, FORBIDDEN);
    expect(problems).toHaveLength(1);
    fail(503, "the server is busy");
    informer.granted();
    fail(403, FORBIDDEN);
    expect(problems).toHaveLength(3);
  });

  it("says once that the permission is granted", () => {
    const { informer, inner, fail, grants } = setup();
    informer.granted();
    expect(grants()).toBe(0);
    fail(403, FORBIDDEN);
    informer.granted();
    informer.granted();
    expect([grants(), informer.problem]).toEqual([1, undefined]);
    expect(informer.lastContact).toBe(inner.lastContact);
  });
});
