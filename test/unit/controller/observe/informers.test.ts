import { describe, expect, it, onTestFinished } from "vitest";
import { createCaches, createInformers } from "../../../../src/controller/observe/caches.ts";
import type { KubeRequest } from "../../../../src/kube/client.ts";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import { pause } from "../../../../src/runtime/clock.ts";
import { FakeClock } from "../../../support/fakes/fake-clock.ts";

const MINUTE_MS = 60_000;
const NAMESPACES = ["acme", "globex"];
const POD = { name: "orders-5d8f-x7k2p", namespace: "globex", uid: "u", resourceVersion: "1" };

interface Options {
  /** Ends of the paths that the account may not read, besides those of all namespaces. */
  readonly forbidden: ReadonlySet<string>;
  /** End of the path of a list that does not end. */
  readonly endless?: string;
  readonly pipeNamespaces?: readonly string[];
  /** Plurals of kinds that the cluster does not serve. */
  readonly removed?: readonly string[];
}

/** The informers of a controller with permissions per namespace. */
async function setup({ forbidden, endless, pipeNamespaces = NAMESPACES, removed = [] }: Options) {
  const [clock, abort] = [new FakeClock(), new AbortController()];
  const requireAllowed = (path: string) => {
    if (removed.some((plural) => path.endsWith(`/${plural}`))) throw new KubeApiError(path, 404, "{}");
    const isOfOthers = !path.includes("/namespaces/") && pipeNamespaces.length > 0;
    if (!isOfOthers && ![...forbidden].some((end) => path.endsWith(end))) return;
    const message = `this is forbidden: User "controller" cannot list resource ${path}`;
    throw new KubeApiError(`GET ${path}`, 403, JSON.stringify({ message }));
  };
  async function* watch({ path, signal }: KubeRequest & { readonly signal: AbortSignal }) {
    if (path.endsWith("/globex/pods")) yield line("ADDED", { metadata: POD, spec: { containers: [] } });
    if (endless !== undefined && path.endsWith(endless)) await pause(clock, Number.POSITIVE_INFINITY, signal);
    yield line("BOOKMARK", bookmark({ "k8s.io/initial-events-end": "true" }));
    while (!signal.aborted) {
      await pause(clock, MINUTE_MS, signal);
      requireAllowed(path);
      yield line("BOOKMARK", bookmark());
    }
  }
  const changes: (string | undefined)[] = [];
  const problems: unknown[] = [];
  const caches = createCaches();
  const informers = createInformers(caches, {
    client: {
      json: async ({ path }) => {
        requireAllowed(path);
        return JSON.parse('{"metadata":{"resourceVersion":"1"},"items":[]}');
      },
      stream: async (request) => {
        requireAllowed(request.path);
        return watch(request);
      },
    },
    clock,
    namespace: "records",
    pipeNamespaces,
    verticalAutoscalers: true,
    onProblem: (problem) => problems.push(problem),
    onPermissionChange: (of) => changes.push(of),
  });
  onTestFinished(() => abort.abort());
  for (const informer of informers.all) void informer.run(abort.signal);
  await clock.advance(0);
  const isSynced = () => informers.all.every((each) => each.isSynced);
  const statefulSetsProblems = () => NAMESPACES.map((namespace) => informers.statefulSetsProblem(namespace));
  const podsProblems = () => NAMESPACES.map((namespace) => informers.podsProblem(namespace));
  return { caches, clock, isSynced, podsProblems, statefulSetsProblems, problems, changes };
}

function line(type: string, object: object): Buffer {
  return Buffer.from(`${JSON.stringify({ type, object })}\n`);
}

function bookmark(annotations = {}): object {
  return { metadata: { resourceVersion: "1", annotations } };
}

const OF_GLOBEX = /cannot list resource .*\/namespaces\/globex\/pods/;

describe("a controller with permissions per namespace, which lacks that for pods in one", () => {
  it("sees the pods in the others", async () => {
    const { caches, isSynced, podsProblems } = await setup({ forbidden: new Set(["/globex/pods"]) });
    expect(isSynced()).toBe(true);
    expect(podsProblems()).toEqual([undefined, expect.stringMatching(OF_GLOBEX)]);
    expect(caches.pods.size).toBe(0);
  });

  it("continues to see them if the permission is missing later, and until it comes back", async () => {
    const forbidden = new Set<string>();
    const { caches, clock, podsProblems, problems, changes } = await setup({ forbidden });
    expect([podsProblems(), caches.pods.size]).toEqual([[undefined, undefined], 1]);
    forbidden.add("/globex/pods");
    await clock.advance(10 * MINUTE_MS);
    expect(podsProblems()).toEqual([undefined, expect.stringMatching(OF_GLOBEX)]);
    expect([problems.length, changes]).toEqual([1, ["globex"]]);
    forbidden.delete("/globex/pods");
    await clock.advance(MINUTE_MS);
    expect([podsProblems(), changes]).toEqual([
      [undefined, undefined],
      ["globex", "globex"],
    ]);
  });

  it("learns at once that the permission is granted", async () => {
    const forbidden = new Set(["/globex/pods"]);
    const { caches, clock, podsProblems, changes } = await setup({ forbidden });
    await clock.advance(10 * MINUTE_MS);
    forbidden.delete("/globex/pods");
    await clock.advance(MINUTE_MS);
    expect([podsProblems(), changes.length, caches.pods.size]).toEqual([[undefined, undefined], 2, 1]);
  });

  it("learns that it may no longer see the StatefulSets in one, and that it may again", async () => {
    const forbidden = new Set<string>();
    const { clock, statefulSetsProblems, changes } = await setup({ forbidden });
    forbidden.add("/globex/statefulsets");
    await clock.advance(10 * MINUTE_MS);
    const problem = expect.stringContaining("/namespaces/globex/statefulsets");
    expect([statefulSetsProblems(), changes]).toEqual([[undefined, problem], ["globex"]]);
    forbidden.clear();
    await clock.advance(MINUTE_MS);
    expect([statefulSetsProblems(), changes.length]).toEqual([[undefined, undefined], 2]);
  });

  it.each(["pods", "statefulsets"])(
    "waits for the list of %s in the others before it begins",
    async (plural) => {
      const forbidden = new Set([`/globex/${plural}`]);
      expect((await setup({ forbidden })).isSynced()).toBe(true);
      expect((await setup({ forbidden, endless: `/acme/${plural}` })).isSynced()).toBe(false);
    },
  );
});

it.each([
  ["VerticalPodAutoscalers", "verticalpodautoscalers", true],
  ["Deployments", "deployments", false],
])("a controller that begins without %s in the cluster (%s) is synced: %s", async (_, plural, expected) => {
  const { isSynced } = await setup({ forbidden: new Set(), removed: [plural] });
  expect(isSynced()).toBe(expected);
});

describe("a controller that lacks the permission for pods everywhere", () => {
  it.each([
    ["all namespaces", []],
    ["one namespace", ["globex"]],
    ["several namespaces", NAMESPACES],
  ])("sees none, and begins without them, with %s", async (_, pipeNamespaces) => {
    const { isSynced, podsProblems } = await setup({ forbidden: new Set(["/pods"]), pipeNamespaces });
    expect(isSynced()).toBe(true);
    const problems = podsProblems().filter((problem) => problem !== undefined);
    expect(problems).toHaveLength(pipeNamespaces.length === 1 ? 1 : 2);
  });
});
