import { describe, expect, it } from "vitest";
import { findUnreadable, whenReadable } from "../../../../src/controller/observe/unreadable-namespaces.ts";
import type { KubeRequest } from "../../../../src/kube/client.ts";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import { FakeClock, settled } from "../../../support/fakes/fake-clock.ts";

const MINUTE_MS = 60_000;
const ALL = ["/apis/apps/v1/deployments", "/apis/pipes.clouddb.dev/v1beta1/pipescalings"];
const FORBIDDEN = 'this is forbidden: User "controller" cannot list resource "this"';
const WITHOUT_ROLE = `${FORBIDDEN}: RBAC: role.rbac.authorization.k8s.io "controller" not found`;

interface Refusal {
  /** Part of the paths. */
  readonly of: string;
  readonly code?: number;
  readonly message?: string;
  readonly isSoonAfterOutage?: boolean;
  readonly areRolesDeleted?: boolean;
}

const OF_ALL: readonly Refusal[] = ALL.map((of) => ({ of }));

/** An API server that refuses these lists. The first refusal whose part of the path matches counts. */
class FakeClient {
  refusals: readonly Refusal[];
  readonly paths: string[] = [];
  most = 0;
  #open = 0;

  constructor(...refusals: readonly Refusal[]) {
    this.refusals = refusals;
  }

  async json<T>({ path, query, signal }: KubeRequest): Promise<T> {
    this.paths.push(path);
    expect(query).toEqual({ limit: 1 });
    this.#open += 1;
    this.most = Math.max(this.most, this.#open);
    await settled();
    this.#open -= 1;
    signal?.throwIfAborted();
    const found = this.refusals.find(({ of }) => path.includes(of));
    if (!found) return JSON.parse("{}");
    const { code = 403, message = `${path}: ${FORBIDDEN}`, areRolesDeleted = false } = found;
    const context = {
      isSoonAfterOutage: found.isSoonAfterOutage ?? false,
      areDeleted: () => areRolesDeleted,
    };
    throw new KubeApiError(`GET ${path}`, code, JSON.stringify({ message }), context);
  }
}

async function find(client: FakeClient, namespaces = ["a", "b", "c"], signal = new AbortController().signal) {
  return [...(await findUnreadable(client, namespaces, signal)).keys()];
}

describe("the namespaces that the controller cannot read when it starts", () => {
  it.each<[string, readonly Refusal[]]>([
    ["both kinds", [{ of: "/namespaces/b/" }]],
    ["Deployments", [{ of: "/namespaces/b/deployments" }]],
    ["PipeScalings", [{ of: "/namespaces/b/pipescalings" }]],
  ])("are those where the list of %s is refused", async (_, refusals) => {
    const client = new FakeClient(...refusals, ...OF_ALL);
    const found = await findUnreadable(client, ["a", "b"], new AbortController().signal);
    expect([...found.keys()]).toEqual(["b"]);
    expect(found.get("b")?.message).toMatch(/403 .*\/namespaces\/b\/.*is forbidden/);
  });

  it("are those where the list is refused although a role that the refusal names was deleted", async () => {
    const refusal = { message: WITHOUT_ROLE, areRolesDeleted: true };
    const all = OF_ALL.map(({ of }) => ({ of, ...refusal }));
    expect(await find(new FakeClient({ of: "/namespaces/b/", ...refusal }, ...all))).toEqual(["b"]);
  });

  it("are none if all are refused, because then the Roles are missing", async () => {
    const client = new FakeClient({ of: "/namespaces/" }, ...OF_ALL);
    expect(await find(client)).toEqual([]);
  });

  it("are none, and none is read, if the account may list both kinds in all namespaces", async () => {
    const client = new FakeClient();
    expect(await find(client)).toEqual([]);
    expect(client.paths).toEqual(ALL);
  });

  it("are looked for in each namespace if the account may list only one of the kinds in all namespaces", async () => {
    const client = new FakeClient({ of: ALL[1] ?? "" }, { of: "/namespaces/b/pipescalings" });
    expect(await find(client)).toEqual(["b"]);
  });

  it.each([[[]], [["a"]]])("are none, and nothing is read, if the setting is %j", async (namespaces) => {
    const client = new FakeClient({ of: "/" });
    expect(await find(client, namespaces)).toEqual([]);
    expect(client.paths).toEqual([]);
  });

  it.each<[string, Refusal]>([
    ["the CRD is missing", { of: "/pipescalings", code: 404, message: "404 page not found" }],
    ["a proxy responds 403", { of: "/namespaces/b/", message: "blocked" }],
  ])("are none if %s, because the informers report that", async (_, refusal) => {
    const client = new FakeClient(refusal, ...OF_ALL);
    expect(await find(client)).toEqual([]);
  });

  it.each<[string, Refusal]>([
    ["refuses a list soon after an outage", { of: "/namespaces/b/", isSoonAfterOutage: true }],
    ["may not have loaded its roles yet", { of: "/namespaces/b/", message: WITHOUT_ROLE }],
    ["is too busy", { of: "/namespaces/b/", code: 429, message: "too many requests" }],
    ["cannot list all namespaces", { of: "v1/deployments", code: 500, message: "etcd" }],
  ])("are looked for again if the API server %s", async (_, refusal) => {
    const client = new FakeClient(refusal, ...OF_ALL);
    await expect(find(client)).rejects.toMatchObject({ code: refusal.code ?? 403 });
  });

  it("are found among hundreds with few calls at a time", async () => {
    const namespaces = Array.from({ length: 100 }, (__, index) => `n-${index}`);
    const client = new FakeClient({ of: "/namespaces/n-7/" }, { of: "/namespaces/n-99/" }, ...OF_ALL);
    expect(await find(client, namespaces)).toEqual(["n-7", "n-99"]);
    expect(client.most).toBe(16);
  });

  it.each([1, 2])("are no longer looked for when the signal is aborted during call %i", async (calls) => {
    const client = new FakeClient(...OF_ALL);
    const abort = new AbortController();
    const found = find(client, ["a", "b"], abort.signal);
    const rejected = expect(found).rejects.toBe("the process ends");
    while (client.paths.length < calls) await settled();
    abort.abort("the process ends");
    await rejected;
    const { length } = client.paths;
    await settled();
    expect(client.paths).toHaveLength(length);
  });
});

describe("the namespaces that were left out", () => {
  function watch(client: FakeClient, namespaces: readonly string[]) {
    const [clock, abort] = [new FakeClock(), new AbortController()];
    const seen: (string | undefined)[] = [];
    const ended = whenReadable(client, clock, namespaces, MINUTE_MS, abort.signal).then((found) => {
      seen.push(found);
    });
    const minute = async () => {
      await clock.advance(MINUTE_MS);
      for (let turn = 0; turn < 10; turn += 1) await settled();
    };
    return { minute, clock, abort, seen, ended };
  }

  it("are tried again once a minute until one of them can be read", async () => {
    const client = new FakeClient({ of: "/namespaces/" });
    const { minute, clock, seen } = watch(client, ["b", "c"]);
    await clock.advance(MINUTE_MS - 1);
    expect(client.paths).toEqual([]);
    for (let minutes = 1; minutes <= 3; minutes += 1) {
      await minute();
      expect(client.paths).toHaveLength(2 * minutes);
    }
    client.refusals = [{ of: "/namespaces/b/" }];
    await minute();
    expect(seen).toEqual(["c"]);
  });

  it.each<[string, Refusal]>([
    ["only one of the kinds", { of: "/pipescalings" }],
    ["nothing, because the CRD is missing", { of: "/pipescalings", code: 404 }],
    ["nothing, because the API server starts", { of: "/", message: WITHOUT_ROLE }],
    ["nothing, because the API server is down", { of: "/", code: 503 }],
  ])("stay left out while the controller can read %s", async (_, refusal) => {
    const client = new FakeClient(refusal);
    const { minute, seen } = watch(client, ["b"]);
    for (let minutes = 0; minutes < 3; minutes += 1) await minute();
    expect(client.paths.length).toBeGreaterThanOrEqual(3);
    expect(seen).toEqual([]);
  });

  it("are no longer tried when the signal is aborted", async () => {
    const client = new FakeClient({ of: "/" });
    const { minute, abort, seen, ended } = watch(client, ["b"]);
    await minute();
    abort.abort();
    await ended;
    await minute();
    expect([seen, client.paths.length]).toEqual([[undefined], 1]);
  });

  it("are not waited for if there are none", async () => {
    const { ended, seen } = watch(new FakeClient(), []);
    await ended;
    expect(seen).toEqual([undefined]);
  });
});
