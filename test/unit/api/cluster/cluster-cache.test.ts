import { Registry } from "prom-client";
import { describe, expect, it, onTestFinished } from "vitest";
import { ClusterCache } from "../../../../src/api/cluster/cluster-cache.ts";
import { ApiMetrics } from "../../../../src/api/metrics.ts";
import { createLogger } from "../../../../src/telemetry/log.ts";
import { FakeClock } from "../../../support/fakes/fake-clock.ts";
import { FakeCluster } from "../../../support/fakes/fake-cluster.ts";

const MINUTE_MS = 60_000;
const MAX_AGE_MS = 5 * MINUTE_MS;
const NAMESPACES = ["acme", "globex"];

const FORBIDDEN = 'pipescalings is forbidden: User "api" cannot list resource "pipescalings"';

/** The caches of a process, whose API server the given function changes before they are read. */
async function setup(change: (cluster: FakeCluster) => void, pipeNamespaces: readonly string[] = NAMESPACES) {
  const [cluster, clock, ending] = [new FakeCluster(), new FakeClock(), new AbortController()];
  onTestFinished(() => ending.abort());
  for (const namespace of NAMESPACES)
    cluster.add("pipescalings", namespace, { metadata: { name: "orders" } });
  change(cluster);
  const lines: { readonly msg: string; readonly err?: { readonly message: string } }[] = [];
  const cache = new ClusterCache({
    client: cluster,
    namespace: "records",
    pipeNamespaces,
    maxAgeMs: MAX_AGE_MS,
    clock,
    log: createLogger("info", "api", { write: (line) => lines.push(JSON.parse(line)) }),
  });
  void cache.run(ending.signal);
  await clock.advance(0);
  const refusals = () => lines.filter(({ err }) => err?.message.includes(" 403 ")).map(({ msg }) => msg);
  return { cluster, clock, cache, refusals };
}

const refuse = (unreadable: string) => (cluster: FakeCluster) => {
  cluster.unreadable = unreadable;
};

/** Long enough for every watch to try again, and for one that became silent to be replaced. */
const RETRY_MS = 4 * MINUTE_MS;

function expectUnavailable(read: () => unknown): void {
  expect(read).toThrow(expect.objectContaining({ status: 503 }));
}

describe("a process whose PipeScalings are refused in one of its namespaces", () => {
  it.each([403, 404])(
    "is ready after a %i, and rejects only the services in that namespace",
    async (code) => {
      const { cache } = await setup((cluster) => {
        cluster.unreadable = "globex/pipescalings";
        cluster.refusalCode = code;
      });
      expect(cache.notSynced()).toEqual([]);
      expect(cache.scaling("acme", "orders")).toMatchObject({ metadata: { namespace: "acme" } });
      expectUnavailable(() => cache.scaling("globex", "orders"));
      expectUnavailable(() => cache.hasHadScaling("globex", "orders"));
      expect(NAMESPACES.filter((each) => cache.hasFreshScalings(each))).toEqual(["acme"]);
    },
  );

  it("is not ready while that namespace cannot be read for another reason", async () => {
    const { cache } = await setup((cluster) => {
      cluster.unreadable = "globex/pipescalings";
      cluster.refusalCode = 500;
    });
    expect(cache.notSynced()).toEqual(["PipeScalings in globex"]);
  });

  it("stays ready during an outage of the API server", async () => {
    const { cluster, clock, cache } = await setup(refuse("globex/pipescalings"));
    cluster.refusalCode = 500;
    await clock.advance(RETRY_MS);
    expect(cache.notSynced()).toEqual([]);
    cluster.reachable = false;
    await clock.advance(RETRY_MS);
    expect(cache.notSynced()).toEqual([]);
  });

  it("reads the namespace as soon as it is allowed to", async () => {
    const { cluster, clock, cache } = await setup(refuse("globex/pipescalings"));
    await clock.advance(RETRY_MS);
    cluster.unreadable = undefined;
    await clock.advance(MINUTE_MS / 2);
    expect(cache.scaling("globex", "orders")).toMatchObject({ metadata: { namespace: "globex" } });
  });

  it("stays ready if that begins later, and rejects the services there when their cache is too old", async () => {
    const { cluster, clock, cache } = await setup(() => undefined);
    expect(cache.notSynced()).toEqual([]);
    cluster.unreadable = "globex/pipescalings";
    await clock.advance(MAX_AGE_MS);
    expect(cache.scaling("globex", "orders")).toMatchObject({ metadata: { namespace: "globex" } });
    await clock.advance(1);
    expectUnavailable(() => cache.scaling("globex", "orders"));
    expect(cache.notSynced()).toEqual([]);
    expect(cache.scaling("acme", "orders")).toMatchObject({ metadata: { namespace: "acme" } });
    cluster.unreadable = undefined;
    await clock.advance(MINUTE_MS / 2);
    expect(cache.scaling("globex", "orders")).toMatchObject({ metadata: { namespace: "globex" } });
  });

  it("logs each refusal once, with the namespace", async () => {
    const { cluster, clock, refusals } = await setup(refuse("globex/pipescalings"));
    await clock.advance(10 * RETRY_MS);
    const once = ["cannot watch PipeScalings in globex; trying again"];
    expect(refusals()).toEqual(once);
    cluster.unreadable = undefined;
    await clock.advance(RETRY_MS);
    refuse("globex/pipescalings")(cluster);
    await clock.advance(10 * RETRY_MS);
    expect(refusals()).toEqual([...once, ...once]);
  });

  it("logs another refusal of the same kind", async () => {
    const { cluster, clock, refusals } = await setup((cluster) => {
      cluster.unreadable = "globex/pipescalings";
      cluster.refusalCode = 404;
    });
    expect(refusals()).toEqual([]);
    cluster.refusalCode = 403;
    await clock.advance(10 * RETRY_MS);
    expect(refusals()).toEqual(["cannot watch PipeScalings in globex; trying again"]);
  });

  it("is not ready if the refusal came soon after an outage, when it may not be true", async () => {
    const { cluster, clock, cache } = await setup((cluster) => {
      cluster.unreadable = "globex/pipescalings";
      cluster.isSoonAfterOutage = true;
    });
    expect(cache.notSynced()).toEqual(["PipeScalings in globex"]);
    cluster.isSoonAfterOutage = false;
    await clock.advance(RETRY_MS);
    expect(cache.notSynced()).toEqual([]);
  });

  it("is not ready if the refusal came from an API server that does not know its roles yet", async () => {
    const { cluster, clock, cache } = await setup((cluster) => {
      cluster.unreadable = "globex/pipescalings";
      cluster.refusalMessage = `${FORBIDDEN}: RBAC: role.rbac.authorization.k8s.io "api" not found`;
    });
    expect(cache.notSynced()).toEqual(["PipeScalings in globex"]);
    cluster.refusalMessage = FORBIDDEN;
    await clock.advance(RETRY_MS);
    expect(cache.notSynced()).toEqual([]);
  });

  it("stays ready if a later API server does not know its roles yet", async () => {
    const { cluster, clock, cache } = await setup(refuse("globex/pipescalings"));
    cluster.refusalMessage = `${FORBIDDEN}: RBAC: role.rbac.authorization.k8s.io "api" not found`;
    await clock.advance(RETRY_MS);
    expect(cache.notSynced()).toEqual([]);
  });

  it("shows in its metrics that this cache is not filled, and for how long", async () => {
    const { clock, cache } = await setup(refuse("globex/pipescalings"));
    const registry = new Registry();
    new ApiMetrics(registry).watchCaches(() => cache.states());
    await clock.advance(RETRY_MS);
    const metrics = await registry.metrics();
    const of = (namespace: string) => `{resource="pipescalings",namespace="${namespace}"}`;
    expect(metrics).toContain(`\npipe_scaling_cache_synced${of("acme")} 1\n`);
    expect(metrics).toContain(`\npipe_scaling_cache_synced${of("globex")} 0\n`);
    expect(metrics).toContain(`\npipe_scaling_cache_age_seconds${of("globex")} ${RETRY_MS / 1000}\n`);
  });
});

describe("a process is not ready", () => {
  const SCALINGS = ["PipeScalings in acme", "PipeScalings in globex"];

  it.each([
    ["API keys", "secrets", ["API keys"]],
    ["records", "configmaps", ["organizations and services"]],
    ["PipeScalings in all of its namespaces", "pipescalings", SCALINGS],
  ])("while it may not read %s", async (_, unreadable, missing) => {
    const { cluster, clock, cache } = await setup(refuse(unreadable));
    expect(cache.notSynced()).toEqual(missing);
    cluster.unreadable = undefined;
    await clock.advance(2000);
    expect(cache.notSynced()).toEqual([]);
  });

  it.each([[[]], [["acme"]]])(
    "while it may not read PipeScalings with the namespaces %j",
    async (namespaces) => {
      const { cache } = await setup(refuse("pipescalings"), namespaces);
      expect(cache.notSynced()).toHaveLength(1);
    },
  );

  it("before its caches are filled", async () => {
    const { cluster, clock, cache } = await setup((cluster) => {
      cluster.reachable = false;
    });
    expect(cache.notSynced()).toEqual(["API keys", "organizations and services", ...SCALINGS]);
    cluster.reachable = true;
    await clock.advance(2000);
    expect(cache.notSynced()).toEqual([]);
  });
});
