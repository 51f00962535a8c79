import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { describe, expect, it, onTestFinished } from "vitest";
import { runController } from "../../../src/controller/process.ts";
import { BUILT_IN_TIERS } from "../../../src/domain/tier.ts";
import { RestartRequiredError } from "../../../src/runtime/restart-required.ts";
import { createLogger } from "../../../src/telemetry/log.ts";
import { CONTROLLER, FakeApiServer } from "../../support/fakes/fake-api-server.ts";
import { writeKubeconfig } from "../../support/fixtures/kubeconfig.ts";
import { POLICY } from "../../support/fixtures/snapshot.ts";

const NAMESPACES = Array.from({ length: 500 }, (_, index) => `pipes-${index}`);
const KINDS = ["pipescalings", "deployments", "statefulsets", "pods", "horizontalpodautoscalers"];

interface Line {
  readonly msg: string;
  readonly namespace?: string;
  readonly opsUrl?: string;
  readonly err?: { readonly message: string };
}

/** Starts a controller that watches these namespaces. */
function startController(server: FakeApiServer, pipeNamespaces: readonly string[]) {
  const log: Line[] = [];
  const abort = new AbortController();
  const ended = runController(
    {
      kubeconfig: writeKubeconfig(server.url),
      namespace: "records",
      pipeNamespaces,
      host: "127.0.0.1",
      opsPort: 0,
      metricsAuthentication: false,
      otlpEndpoint: undefined,
      identity: CONTROLLER,
      tiers: new Map(BUILT_IN_TIERS),
      ...POLICY,
    },
    createLogger("info", "controller", { write: (line) => log.push(JSON.parse(line)) }),
    abort.signal,
    { timeouts: { unreadableMs: 100 } },
  );
  const end = ended.catch((error: unknown) => error);
  onTestFinished(async () => {
    abort.abort();
    await end;
  });
  const isLeader = () => log.some(({ msg }) => msg === "leading");
  const problems = () => log.filter(({ err }) => err !== undefined);
  /** The value of the metric. */
  const unreadable = async () => {
    const { opsUrl } = log.find(({ msg }) => msg === "listening") ?? {};
    const metrics = await (await fetch(`${opsUrl}/metrics`)).text();
    return /^pipe_scaling_unreadable_namespaces (\d+)$/m.exec(metrics)?.[1];
  };
  return { log, end, isLeader, problems, unreadable };
}

/** Returns the paths of all watches except those of records. */
function pipeWatches(server: FakeApiServer): readonly string[] {
  return server.watched.filter((path) => !path.endsWith("/configmaps"));
}

function isClusterWide(path: string): boolean {
  return !path.includes("/namespaces/");
}

describe("a controller for 500 namespaces", { timeout: 90_000 }, () => {
  it("opens one watch per kind if it has permission to watch all namespaces", async () => {
    const server = await FakeApiServer.start();
    const { isLeader, problems } = startController(server, NAMESPACES);
    await waitFor(isLeader, { what: "the controller to become the leader" });
    expect(
      pipeWatches(server)
        .map((path) => path.split("/").at(-1))
        .toSorted(),
    ).toEqual(KINDS.toSorted());
    expect(pipeWatches(server).every(isClusterWide)).toBe(true);
    expect(problems()).toEqual([]);
  });

  it("opens one watch per namespace and kind, and logs no error, if it has no permission to watch all namespaces", async () => {
    const server = await FakeApiServer.start();
    server.forbids = isClusterWide;
    const { isLeader, problems } = startController(server, NAMESPACES);
    await waitFor(isLeader, { what: "the controller to become the leader" });
    expect(pipeWatches(server)).toHaveLength(NAMESPACES.length * KINDS.length);
    expect(pipeWatches(server).some(isClusterWide)).toBe(false);
    expect(problems()).toEqual([]);
  });

  it("renews its lease on a connection that no other call uses", async () => {
    const server = await FakeApiServer.start();
    const { isLeader } = startController(server, NAMESPACES);
    await waitFor(isLeader, { what: "the controller to become the leader" });
    const isLease = ({ url }: { readonly url: URL }) => url.pathname.includes("/leases");
    const renewals = () => server.requests.filter((each) => each.method === "PUT" && isLease(each));
    await waitFor(() => renewals().length > 0, { what: "the lease to be renewed" });
    const connections = new Set(server.requests.filter(isLease).map(({ connection }) => connection));
    const others = server.requests.filter((each) => !isLease(each) && connections.has(each.connection));
    expect(others.map(({ url }) => url.pathname)).toEqual([]);
  });
});

describe("a controller for some namespaces", () => {
  it("switches to one watch per namespace and kind when its permission to watch all namespaces is revoked", async () => {
    const server = await FakeApiServer.start();
    const { isLeader, problems } = startController(server, ["acme", "globex"]);
    await waitFor(isLeader, { what: "the controller to become the leader" });
    expect(pipeWatches(server).filter(isClusterWide)).toHaveLength(KINDS.length);
    server.forbids = isClusterWide;
    server.endForbiddenWatches();
    await waitFor(() => pipeWatches(server).length === 2 * KINDS.length, { what: "the new watches" });
    expect(pipeWatches(server).some(isClusterWide)).toBe(false);
    expect(problems()).toHaveLength(KINDS.length);
  });

  it("watches only its configured namespace, even if it has permission to watch all namespaces", async () => {
    const server = await FakeApiServer.start();
    const { isLeader } = startController(server, ["acme"]);
    await waitFor(isLeader, { what: "the controller to become the leader" });
    expect(pipeWatches(server)).toHaveLength(KINDS.length);
    expect(
      server.requests.filter(({ url }) => url.searchParams.has("watch")).map(({ url }) => url.pathname),
    ).not.toContain("/apis/apps/v1/deployments");
  });
});

describe("a controller whose permissions in a namespace are gone", () => {
  const isOf = (namespace: string) => (path: string) => path.includes(`/namespaces/${namespace}/`);
  const LEFT_OUT = /^the namespace cannot be read/;

  it("leads in the other namespaces, and ends when it can read that one", async () => {
    const server = await FakeApiServer.start();
    server.forbids = (path) => isClusterWide(path) || isOf("globex")(path);
    const { log, end, isLeader, problems, unreadable } = startController(server, [
      "acme",
      "globex",
      "initech",
    ]);
    await waitFor(isLeader, { what: "the controller to become the leader" });
    expect(pipeWatches(server)).toHaveLength(2 * KINDS.length);
    expect(problems()).toMatchObject([{ msg: expect.stringMatching(LEFT_OUT), namespace: "globex" }]);
    expect(problems()[0]?.err?.message).toMatch(/403 this is forbidden/);
    expect(await unreadable()).toBe("1");
    const ofGlobex = () => server.requests.filter(({ url }) => isOf("globex")(url.pathname));
    await waitFor(() => ofGlobex().length >= 3, { what: "the namespace to be tried again" });
    expect(ofGlobex().every(({ method, url }) => method === "GET" && url.search === "?limit=1")).toBe(true);
    server.forbids = isClusterWide;
    expect(await end).toEqual(
      new RestartRequiredError("the namespace globex can be read now: restart required"),
    );
    expect(log.filter(({ msg }) => LEFT_OUT.test(msg))).toHaveLength(1);
  });

  it("watches one namespace if it can read no other", async () => {
    const server = await FakeApiServer.start();
    server.forbids = (path) => isClusterWide(path) || isOf("globex")(path);
    const { isLeader } = startController(server, ["acme", "globex"]);
    await waitFor(isLeader, { what: "the controller to become the leader" });
    expect(pipeWatches(server).every(isOf("acme"))).toBe(true);
  });

  it("does not begin, and says why, if it can read none", async () => {
    const server = await FakeApiServer.start();
    server.forbids = (path) => !path.includes("/configmaps");
    const { log, isLeader, problems } = startController(server, ["acme", "globex"]);
    const isWatched = (namespace: string) =>
      problems().some(({ err }) => isOf(namespace)(err?.message ?? ""));
    await waitFor(() => isWatched("acme") && isWatched("globex"), { what: "both namespaces to be refused" });
    expect(isLeader()).toBe(false);
    expect(log.filter(({ msg }) => LEFT_OUT.test(msg))).toEqual([]);
  });

  it("keeps on if the permissions are gone later", async () => {
    const server = await FakeApiServer.start();
    server.forbids = isClusterWide;
    const { end, isLeader, problems, unreadable } = startController(server, ["acme", "globex"]);
    await waitFor(isLeader, { what: "the controller to become the leader" });
    expect(await unreadable()).toBe("0");
    server.forbids = (path) => isClusterWide(path) || isOf("globex")(path);
    server.endForbiddenWatches();
    await waitFor(() => problems().length >= KINDS.length, { what: "the refusals" });
    server.forbids = isClusterWide;
    await waitFor(() => pipeWatches(server).length === 2 * KINDS.length, { what: "the new watches" });
    expect(await Promise.race([end, Promise.resolve("running")])).toBe("running");
  });
});
