import { describe, expect, it } from "vitest";
import { Nodes } from "../../../src/capacity/nodes.ts";
import type { KubeRequest } from "../../../src/kube/client.ts";
import { KubeApiError } from "../../../src/kube/errors.ts";
import { createLogger } from "../../../src/telemetry/log.ts";
import { FakeClock } from "../../support/fakes/fake-clock.ts";
import { aNode } from "../../support/fixtures/node.ts";

const PAGES = [
  { metadata: { resourceVersion: "9", continue: "more" }, items: [aNode("a", { cpu: "4" })] },
  { metadata: { resourceVersion: "9" }, items: [aNode("b", { cpu: "8" })] },
];

const FORBIDDEN = 'nodes is forbidden: User "controller" cannot list resource "nodes" in API group ""';

const refusal = (code: number, message: string, isSoonAfterOutage = false) =>
  new KubeApiError("GET /api/v1/nodes", code, JSON.stringify({ message }), { isSoonAfterOutage });

function setup() {
  const clock = new FakeClock();
  const requests: KubeRequest[] = [];
  const lines: object[] = [];
  const state: { error?: Error } = {};
  const client = {
    async json<T>(request: KubeRequest): Promise<T> {
      requests.push(request);
      if (state.error) throw state.error;
      return JSON.parse(JSON.stringify(PAGES[request.query?.["continue"] === "more" ? 1 : 0]));
    },
  };
  const log = createLogger("info", "controller", { write: (line) => lines.push(JSON.parse(line)) });
  return { clock, requests, lines, state, nodes: new Nodes({ client, clock, log, maxAgeMs: 60_000 }) };
}

describe("the nodes of the cluster", () => {
  it("are listed page by page", async () => {
    const { nodes, requests } = setup();
    expect((await nodes.list())?.map(({ name }) => name)).toEqual(["a", "b"]);
    expect(requests).toMatchObject([
      { path: "/api/v1/nodes", query: { limit: 500 } },
      { path: "/api/v1/nodes", query: { limit: 500, continue: "more" } },
    ]);
  });

  it("are listed at most once a minute for any number of callers", async () => {
    const { nodes, requests, clock } = setup();
    await Promise.all([nodes.list(), nodes.list()]);
    await clock.advance(59_999);
    await nodes.list();
    expect(requests).toHaveLength(2);
    await clock.advance(1);
    await nodes.list();
    expect(requests).toHaveLength(4);
  });

  it("are unknown without the permission to list them, which is logged once as a warning", async () => {
    const { nodes, requests, clock, lines, state } = setup();
    state.error = refusal(403, FORBIDDEN);
    expect(await nodes.list()).toBeUndefined();
    await clock.advance(60_000);
    expect(await nodes.list()).toBeUndefined();
    expect(requests).toHaveLength(2);
    expect(lines).toMatchObject([
      {
        level: "warn",
        msg: "no permission to list nodes: rollouts start without a check of node capacity",
      },
    ]);
    delete state.error;
    await clock.advance(60_000);
    expect(await nodes.list()).toHaveLength(2);
  });

  it.each([
    ["another error", refusal(500, "etcd")],
    ["a refusal soon after an outage", refusal(403, FORBIDDEN, true)],
    [
      "a refusal that names a missing role",
      refusal(403, `${FORBIDDEN}: RBAC: clusterrole.rbac.authorization.k8s.io "controller" not found`),
    ],
    ["a 403 of a proxy", refusal(403, "blocked")],
  ])("are listed again by the next call after %s, and no permission is missing", async (_, error) => {
    const { nodes, state, lines } = setup();
    state.error = error;
    await expect(nodes.list()).rejects.toBe(error);
    delete state.error;
    expect(await nodes.list()).toHaveLength(2);
    expect(lines).toEqual([]);
  });
});
