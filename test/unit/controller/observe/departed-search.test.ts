import { describe, expect, it } from "vitest";
import { LAST_ROLLOUT_ANNOTATION, SERVICE_LABEL, TYPE_LABEL } from "../../../../src/controller/names.ts";
import { searchDeparted } from "../../../../src/controller/observe/departed-search.ts";
import { formatLastRollout } from "../../../../src/controller/observe/last-rollout.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../../../src/crd/names.ts";
import type { KubeRequest } from "../../../../src/kube/client.ts";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import type { Deployment, StatefulSet } from "../../../../src/kube/workloads.ts";
import { FakeClock } from "../../../support/fakes/fake-clock.ts";
import { managedBy, ROLLOUT, resizedDeployment } from "../../../support/fixtures/resized-deployment.ts";
import { aHeldStatefulSet, withAnnotation } from "../../../support/fixtures/stateful-set.ts";
import { selectionOf, targetOf } from "../../../support/simulation/selectors.ts";

const OTHER = "another-service";
const PAUSED = { "f:spec": { "f:paused": {} } };
const PAUSED_BY_US = [
  ...managedBy(CONTROLLER_FIELD_MANAGER),
  { manager: CONTROLLER_FIELD_MANAGER, operation: "Update", fieldsV1: PAUSED },
];
const REFUSED = new KubeApiError(
  "GET",
  403,
  JSON.stringify({ message: 'statefulsets.apps is forbidden: User "controller" cannot list resource' }),
);

interface Changes {
  readonly labels?: Readonly<Record<string, string>>;
  readonly managedFields?: Deployment["metadata"]["managedFields"];
  readonly paused?: boolean;
}

function aDeployment(
  name: string,
  { labels = {}, managedFields = PAUSED_BY_US, paused = true }: Changes = {},
) {
  const made = resizedDeployment({});
  const annotation = formatLastRollout(
    { ...ROLLOUT, serviceId: "service", isCommitting: true },
    `uid-${name}`,
  );
  const annotations = { ...made.metadata.annotations, [LAST_ROLLOUT_ANNOTATION]: annotation };
  const metadata = { ...made.metadata, name, uid: `uid-${name}`, labels, managedFields, annotations };
  return { ...made, metadata, spec: { ...made.spec, paused } };
}

interface State {
  errorOf: (request: KubeRequest) => Error | undefined;
  isEnded: boolean;
  statefulSets: readonly StatefulSet[];
}

function setup(...deployments: readonly Deployment[]) {
  const clock = new FakeClock();
  const requests: KubeRequest[] = [];
  const problems: unknown[] = [];
  const found: string[] = [];
  const abort = new AbortController();
  const state: State = { errorOf: () => undefined, isEnded: false, statefulSets: [] };
  const client = {
    json<T>(request: KubeRequest): Promise<T> {
      requests.push(request);
      const error = state.errorOf(request);
      if (error) return Promise.reject(error);
      const objects = targetOf(request).plural === "deployments" ? deployments : state.statefulSets;
      const selected = objects.filter(selectionOf(request));
      // Pages of one object.
      const at = Number(request.query?.["continue"] ?? 0);
      const next = at + 1 < selected.length ? `${at + 1}` : undefined;
      const list = { metadata: { resourceVersion: "9", continue: next }, items: selected.slice(at, at + 1) };
      return Promise.resolve(JSON.parse(JSON.stringify(list)));
    },
  };
  const begin = (...pipeNamespaces: readonly string[]) => {
    const onProblem = (problem: unknown) => problems.push(problem);
    const departed = searchDeparted({ client, clock, onProblem, pipeNamespaces }, (pipe) => {
      found.push(`${pipe.metadata.name} of ${pipe.serviceId}`);
    });
    const ended = departed.run(abort.signal).then(() => {
      state.isEnded = true;
    });
    return { departed, ended };
  };
  const search = async (...pipeNamespaces: readonly string[]) => {
    const { departed } = begin(...pipeNamespaces);
    await clock.advance(0);
    return departed;
  };
  return { clock, requests, problems, found, abort, state, begin, search };
}

const LABELS = { [SERVICE_LABEL]: "service", [TYPE_LABEL]: "database" };

describe("the search for workloads that lost the labels of a pipe during a commit", () => {
  it.each([
    ["no label of a pipe", {}],
    ["only the label of the type", { [TYPE_LABEL]: "database" }],
    ["only the label of the service", { [SERVICE_LABEL]: "service" }],
    ["another type", { ...LABELS, [TYPE_LABEL]: "other" }],
    ["the label of another service, and no type", { [SERVICE_LABEL]: OTHER }],
  ])("finds one with %s, for the service of the commit", async (_, labels) => {
    const { search, found } = setup(aDeployment("a", { labels }));
    await search();
    expect(found).toEqual(["a of service"]);
  });

  it("reads all pages", async () => {
    const { search, found } = setup(aDeployment("a"), aDeployment("b"), aDeployment("c"));
    await search();
    expect(found).toEqual(["a of service", "b of service", "c of service"]);
  });

  it.each([
    ["is a pipe, which the watch shows", { labels: LABELS }],
    ["is not paused", { paused: false }],
    ["was paused by its owner", { managedFields: managedBy(CONTROLLER_FIELD_MANAGER) }],
    [
      "is also paused by its owner",
      {
        managedFields: [...PAUSED_BY_US, { manager: "owner", operation: "Apply" as const, fieldsV1: PAUSED }],
      },
    ],
  ])("finds none that %s", async (_, changes) => {
    const { search, found } = setup(aDeployment("a", changes));
    await search();
    expect(found).toEqual([]);
  });

  it("lists only the namespaces of pipes, and both kinds", async () => {
    const { search, requests } = setup();
    await search("x", "y");
    const paths = ["x", "y"].flatMap((namespace) =>
      ["deployments", "statefulsets"].map((plural) => `/apis/apps/v1/namespaces/${namespace}/${plural}`),
    );
    expect(requests.map(({ path }) => path)).toEqual(paths.flatMap((path) => [path, path]));
  });

  it("is repeated after any error, which is reported, with growing delays", async () => {
    const { search, state, clock, problems, requests, found } = setup(aDeployment("a"));
    state.errorOf = () => new KubeApiError("GET", 410, "{}");
    await search();
    await clock.advance(10 * 60_000);
    expect(requests.length).toBeGreaterThan(15);
    expect(requests.length).toBeLessThan(50);
    expect(problems).toHaveLength(requests.length);
    state.errorOf = () => undefined;
    await clock.advance(30_000);
    expect(found).toEqual(["a of service"]);
  });

  it("waits for the time that the API server requests", async () => {
    const { search, state, clock, requests } = setup();
    const retryAfter = { retryAfterHeader: "40" };
    state.errorOf = () => new KubeApiError("GET", 429, "{}", retryAfter);
    await search();
    await clock.advance(39_000);
    expect(requests).toHaveLength(1);
    state.errorOf = () => undefined;
    await clock.advance(2000);
    expect(requests).toHaveLength(5);
  });

  it("leaves out a kind that the controller may not list, because it could not release it either", async () => {
    const { search, state, problems, found } = setup(aDeployment("a"));
    state.errorOf = (request) => (targetOf(request).plural === "statefulsets" ? REFUSED : undefined);
    await search("pipes");
    expect([found, problems]).toEqual([["a of service"], []]);
  });

  it("goes on after a workload that cannot be read, and reports it", async () => {
    const damaged = aDeployment("a");
    const { search, problems, found } = setup({ ...damaged, spec: JSON.parse("{}") }, aDeployment("b"));
    await search();
    expect(found).toEqual(["b of service"]);
    expect(problems).toMatchObject([{ name: "UnreadableObjectError" }]);
  });

  it("is made once, and again after a request, at most every ten seconds for any number of requests", async () => {
    const { search, requests, clock } = setup();
    const departed = await search();
    await clock.advance(60 * 60_000);
    expect(requests).toHaveLength(4);
    for (let requested = 0; requested < 100; requested++) {
      departed.request();
      await clock.advance(1000);
    }
    expect(requests.length).toBeGreaterThan(4 * 9);
    expect(requests.length).toBeLessThanOrEqual(4 * 12);
  });

  it("is repeated after a request during a search", async () => {
    const { begin, state, clock, requests } = setup();
    state.errorOf = () => new KubeApiError("GET", 500, "{}");
    const { departed } = begin();
    await clock.advance(0);
    departed.request();
    state.errorOf = () => undefined;
    await clock.advance(60_000);
    expect(requests).toHaveLength(1 + 2 * 4);
  });

  it.each([
    ["waits for the next attempt", new KubeApiError("GET", 500, "{}")],
    ["waits for a request", undefined],
  ])("ends when the process ends, also while it %s", async (_, error) => {
    const { begin, state, clock, abort } = setup();
    state.errorOf = () => error;
    const { ended } = begin();
    await clock.advance(5000);
    expect(state.isEnded).toBe(false);
    abort.abort();
    await ended;
    expect(state.isEnded).toBe(true);
  });
});

it("a StatefulSet with a large partition and no records of writers is found only if the annotation shows a hold", async () => {
  const { search, found, state } = setup();
  const held = aHeldStatefulSet();
  const unmanaged = { ...held, metadata: { ...held.metadata, labels: {}, managedFields: [] } };
  state.statefulSets = [unmanaged];
  await search();
  expect(found).toEqual([]);
  for (const ofOwner of [ROLLOUT, { ...ROLLOUT, isCommitting: true, isUnheld: true }]) {
    state.statefulSets = [withAnnotation(unmanaged, ofOwner)];
    await search();
    expect(found).toEqual([]);
  }
  state.statefulSets = [withAnnotation(unmanaged, { ...ROLLOUT, isCommitting: true })];
  await search();
  expect(found).toEqual(["a of service"]);
});
