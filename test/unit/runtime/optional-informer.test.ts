import { describe, expect, it } from "vitest";
import { KubeApiError } from "../../../src/kube/errors.ts";
import { OptionalInformer } from "../../../src/runtime/optional-informer.ts";
import { FakeClock } from "../../support/fakes/fake-clock.ts";

const FORBIDDEN = 'pods is forbidden: User "controller" cannot list resource "pods"';
const WITHOUT_ROLE = `${FORBIDDEN}: RBAC: clusterrole.rbac.authorization.k8s.io "controller" not found`;

function setup() {
  const clock = new FakeClock();
  const problems: unknown[] = [];
  let granted = 0;
  let refused = 0;
  const synced = Promise.withResolvers<void>();
  const inner = {
    resource: "pods",
    synced: synced.promise,
    isSynced: false,
    lastContact: 0,
    run: (signal: AbortSignal) =>
      new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve())),
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
      onPermissionChange: () => {
        if (informer.problem === undefined) granted += 1;
        else refused += 1;
      },
    },
  );
  const fail = (code: number, message: string, areRolesDeleted = false) =>
    report(
      new KubeApiError("GET /pods", code, JSON.stringify({ message }), { areDeleted: () => areRolesDeleted }),
    );
  /** The store changes, and then the informer is in contact. */
  const grant = async () => {
    informer.granted();
    await clock.advance(1);
    Object.assign(inner, { isSynced: true, lastContact: clock.monotonic() });
    informer.granted();
    await clock.advance(1);
  };
  /** A bookmark or an empty list shows that the store is current, and changes nothing in it. */
  const contact = () => Object.assign(inner, { isSynced: true, lastContact: clock.monotonic() });
  return {
    clock,
    informer,
    inner,
    synced,
    problems,
    fail,
    grant,
    contact,
    grants: () => granted,
    refusals: () => refused,
  };
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
    [403, WITHOUT_ROLE],
  ])("is not synced after another problem: %i %s", (code, message) => {
    const { informer, problems, fail } = setup();
    fail(code, message);
    expect([informer.isSynced, informer.problem]).toEqual([false, undefined]);
    expect(problems).toHaveLength(1);
  });

  it("counts as synced without the permission once a role that each refusal names was deleted", async () => {
    const { informer, fail } = setup();
    fail(403, WITHOUT_ROLE);
    fail(403, WITHOUT_ROLE, true);
    expect([informer.isSynced, informer.problem]).toEqual([true, WITHOUT_ROLE]);
    await informer.synced;
  });

  it("reports a missing permission once for each namespace, because it may have been left out on purpose", async () => {
    const { problems, fail, grant } = setup();
    const inNamespace = (name: string) => `${FORBIDDEN} in the namespace "${name}"`;
    for (const name of ["a", "b", "a", "b"]) fail(403, inNamespace(name));
    expect(problems).toHaveLength(2);
    fail(503, "the server is busy");
    await grant();
    fail(403, inNamespace("a"));
    expect(problems).toHaveLength(4);
  });

  it("says once that the permission is granted", async () => {
    const { informer, inner, fail, grant, grants } = setup();
    await grant();
    expect(grants()).toBe(0);
    fail(403, FORBIDDEN);
    await grant();
    await grant();
    expect([grants(), informer.problem]).toEqual([1, undefined]);
    expect(informer.lastContact).toBe(inner.lastContact);
  });

  it("says once that the permission is missing, each time that it is lost", async () => {
    const { fail, grant, refusals } = setup();
    fail(503, "the server is busy");
    expect(refusals()).toBe(0);
    for (let times = 1; times <= 3; times += 1) {
      fail(403, FORBIDDEN);
      fail(403, FORBIDDEN.replace("list", "watch"));
      expect(refusals()).toBe(times);
      await grant();
    }
  });

  it("says that the permission is missing again before it has said that it was granted", async () => {
    const { clock, fail, contact, refusals } = setup();
    fail(403, FORBIDDEN);
    await clock.advance(1);
    contact();
    fail(403, FORBIDDEN);
    expect(refusals()).toBe(2);
  });

  it("says within ten seconds that the permission is granted although no object changes", async () => {
    const { clock, informer, fail, contact, grants } = setup();
    for (let times = 1; times <= 3; times += 1) {
      fail(403, FORBIDDEN);
      await clock.advance(30_000);
      fail(403, FORBIDDEN);
      await clock.advance(45_000);
      expect(grants()).toBe(times - 1);
      contact();
      await clock.advance(10_000);
      expect([grants(), informer.problem]).toEqual([times, undefined]);
      await clock.advance(600_000);
      expect(grants()).toBe(times);
    }
  });

  it("says nothing after its end", async () => {
    const { clock, informer, fail, contact, grants } = setup();
    const abort = new AbortController();
    const running = informer.run(abort.signal);
    fail(403, FORBIDDEN);
    await clock.advance(1000);
    abort.abort();
    await running;
    contact();
    await clock.advance(60_000);
    expect(grants()).toBe(0);
  });

  it("stays synced and refused while objects of other namespaces change", async () => {
    const { clock, informer, inner, fail, grants } = setup();
    inner.isSynced = true;
    fail(403, FORBIDDEN);
    // The contact is that of the namespace that was confirmed least recently.
    informer.granted();
    await clock.advance(60_000);
    expect([informer.isSynced, informer.problem, grants()]).toEqual([true, FORBIDDEN, 0]);
    expect(informer.lastContact).toBe(clock.monotonic());
  });
});
