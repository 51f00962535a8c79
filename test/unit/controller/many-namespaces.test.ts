import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { describe, expect, it, onTestFinished } from "vitest";
import { runController } from "../../../src/controller/process.ts";
import { BUILT_IN_TIERS } from "../../../src/domain/tier.ts";
import { createLogger } from "../../../src/telemetry/log.ts";
import { CONTROLLER, FakeApiServer } from "../../support/fakes/fake-api-server.ts";
import { writeKubeconfig } from "../../support/fixtures/kubeconfig.ts";
import { POLICY } from "../../support/fixtures/snapshot.ts";

const NAMESPACES = Array.from({ length: 500 }, (_, index) => `pipes-${index}`);
const KINDS = ["pipescalings", "deployments", "pods", "horizontalpodautoscalers"];

/** A controller of these namespaces, and its log. */
function startController(server: FakeApiServer, pipeNamespaces: readonly string[]) {
  const log: { readonly msg: string; readonly err?: unknown }[] = [];
  const abort = new AbortController();
  const ended = runController(
    {
      kubeconfig: writeKubeconfig(server.url),
      namespace: "records",
      pipeNamespaces,
      host: "127.0.0.1",
      opsPort: 0,
      metricsAuthentication: false,
      identity: CONTROLLER,
      tiers: new Map(BUILT_IN_TIERS),
      ...POLICY,
    },
    createLogger("info", "controller", { write: (line) => log.push(JSON.parse(line)) }),
    abort.signal,
  );
  onTestFinished(async () => {
    abort.abort();
    await ended;
  });
  const leads = () => log.some(({ msg }) => msg === "leading");
  const problems = () => log.filter(({ err }) => err !== undefined);
  return { leads, problems };
}

/** Paths of watches without the records'. */
function pipeWatches(server: FakeApiServer): readonly string[] {
  return server.watched.filter((path) => !path.endsWith("/configmaps"));
}

function isClusterWide(path: string): boolean {
  return !path.includes("/namespaces/");
}

describe("a controller of 500 namespaces", { timeout: 90_000 }, () => {
  it("has one watch for each kind if it may watch all namespaces", async () => {
    const server = await FakeApiServer.start();
    const { leads, problems } = startController(server, NAMESPACES);
    await waitFor(leads, { what: "the controller to lead" });
    expect(
      pipeWatches(server)
        .map((path) => path.split("/").at(-1))
        .toSorted(),
    ).toEqual(KINDS.toSorted());
    expect(pipeWatches(server).every(isClusterWide)).toBe(true);
    expect(problems()).toEqual([]);
  });

  it("leads with one watch for each namespace and kind if it may not, without a failed call", async () => {
    const server = await FakeApiServer.start();
    server.forbids = isClusterWide;
    const { leads, problems } = startController(server, NAMESPACES);
    await waitFor(leads, { what: "the controller to lead" });
    expect(pipeWatches(server)).toHaveLength(NAMESPACES.length * KINDS.length);
    expect(pipeWatches(server).some(isClusterWide)).toBe(false);
    expect(problems()).toEqual([]);
  });

  it("renews its lease on a connection that no other call uses", async () => {
    const server = await FakeApiServer.start();
    const { leads } = startController(server, NAMESPACES);
    await waitFor(leads, { what: "the controller to lead" });
    const isLease = ({ url }: { readonly url: URL }) => url.pathname.includes("/leases");
    const renewals = () => server.requests.filter((each) => each.method === "PUT" && isLease(each));
    await waitFor(() => renewals().length > 0, { what: "the lease to be renewed" });
    const connections = new Set(server.requests.filter(isLease).map(({ connection }) => connection));
    const others = server.requests.filter((each) => !isLease(each) && connections.has(each.connection));
    expect(others.map(({ url }) => url.pathname)).toEqual([]);
  });
});

describe("a controller of two namespaces", () => {
  it("watches each namespace once the permission to watch all is revoked", async () => {
    const server = await FakeApiServer.start();
    const { leads, problems } = startController(server, ["acme", "globex"]);
    await waitFor(leads, { what: "the controller to lead" });
    expect(pipeWatches(server).filter(isClusterWide)).toHaveLength(KINDS.length);
    server.forbids = isClusterWide;
    server.endForbiddenWatches();
    await waitFor(() => pipeWatches(server).length === 2 * KINDS.length, { what: "the new watches" });
    expect(pipeWatches(server).some(isClusterWide)).toBe(false);
    expect(problems()).toHaveLength(KINDS.length);
  });

  it("watches only the namespace that is configured, even if it may watch all", async () => {
    const server = await FakeApiServer.start();
    const { leads } = startController(server, ["acme"]);
    await waitFor(leads, { what: "the controller to lead" });
    expect(pipeWatches(server)).toHaveLength(KINDS.length);
    expect(
      server.requests.filter(({ url }) => url.searchParams.has("watch")).map(({ url }) => url.pathname),
    ).not.toContain("/apis/apps/v1/deployments");
  });
});
