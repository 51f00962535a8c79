import { describe, expect, it } from "vitest";
import { ClusterCache } from "../../../../src/api/cluster/cluster-cache.ts";
import { LiveReader } from "../../../../src/api/cluster/live-reader.ts";
import { PipeScalingWriter } from "../../../../src/api/cluster/pipe-scaling-writer.ts";
import { RecordWriter } from "../../../../src/api/cluster/record-writer.ts";
import { WriteQueue } from "../../../../src/api/cluster/write-queue.ts";
import { authorize } from "../../../../src/api/middleware/authorize.ts";
import { methodNotAllowed } from "../../../../src/api/middleware/not-found.ts";
import { expressPaths } from "../../../../src/api/path-aliases.ts";
import { OPERATIONS, resourceRouters } from "../../../../src/api/resources/operations.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { BUILT_IN_TIERS } from "../../../../src/domain/tier.ts";
import { createLogger } from "../../../../src/telemetry/log.ts";
import { FakeClock } from "../../../support/fakes/fake-clock.ts";
import { FakeCluster } from "../../../support/fakes/fake-cluster.ts";

const NO_ALIASES = new Map<string, string>();

function routers() {
  const client = new FakeCluster();
  const clock = new FakeClock();
  const log = createLogger("silent", "api");
  return resourceRouters({
    cache: new ClusterCache({ client, namespace: "records", pipeNamespaces: [], maxAgeMs: 0, clock, log }),
    clock,
    log,
    tiers: BUILT_IN_TIERS,
    maximumSize: sizeOfCores(24),
    pathAliases: NO_ALIASES,
    maxBoostMs: 30 * 86_400_000,
    liveReader: new LiveReader(client),
    scalingWriter: new PipeScalingWriter(client),
    scalingWrites: new WriteQueue(clock),
    recordWriter: new RecordWriter(client, "records"),
    memberWrites: new WriteQueue(clock),
    backupWrites: new WriteQueue(clock),
  });
}

const LAYERS = routers().flatMap(({ stack }) => stack);
const ROUTES = LAYERS.flatMap(({ route }) => (route ? [route] : []));

type Route = (typeof ROUTES)[number];

/** The path without aliases. Express keeps a list of paths, although its type is a string. */
function pathOf(route: Route): string {
  const [path = ""] = [route.path].flat();
  return path;
}

/** The handlers of a route for one method, in order. In Express, handlers for all methods have no method. */
function handlersOf({ stack }: Route, method: string | undefined): unknown[] {
  return stack.filter((layer) => layer.method === method).map(({ handle }) => handle);
}

function methodsOf({ stack }: Route): string[] {
  return [...new Set(stack.flatMap(({ method }) => method ?? []))];
}

describe.each(OPERATIONS)("$method $path", ({ method, path }) => {
  const paths = expressPaths(path, NO_ALIASES);
  const routes = ROUTES.filter((route) => paths.includes(pathOf(route)));

  it("has exactly one route", () => {
    const message = `The routers of resourceRouters in src/api/resources/operations.ts need one route for ${method} ${path}: add it to the router of its folder, or a new router to the list, then run npm run test:unit`;
    expect(routes.map(methodsOf), message).toEqual([expect.arrayContaining([method.toLowerCase()])]);
  });

  it("authorizes the key before any other handler runs", () => {
    for (const route of routes) {
      const handlers = handlersOf(route, method.toLowerCase());
      expect(handlers.length).toBeGreaterThan(1);
      expect(handlers[0]).toBe(authorize);
    }
  });

  it("ends its route with the handler that rejects all other methods", () => {
    for (const route of routes) {
      expect(handlersOf(route, undefined)).toEqual([methodNotAllowed]);
      expect(route.stack.at(-1)?.handle).toBe(methodNotAllowed);
    }
  });
});

describe("the routers of the resources", () => {
  it("serve exactly the methods and paths of the operations", () => {
    const registered = ROUTES.flatMap((route) =>
      methodsOf(route).map((method) => `${method.toUpperCase()} ${pathOf(route)}`),
    );
    const declared = OPERATIONS.flatMap(({ method, path }) =>
      expressPaths(path, NO_ALIASES).map((each) => `${method} ${each}`),
    );
    const message =
      "OPERATIONS and resourceRouters in src/api/resources/operations.ts differ: add the operation or its router, then run npm run test:unit";
    expect(registered.toSorted(), message).toEqual(declared.toSorted());
  });

  it("run no handler outside of a route", () => {
    expect(LAYERS.filter(({ route }) => !route)).toEqual([]);
  });
});

describe("the operation that returns the size", () => {
  it("says when it responds with 503, and names the operation that shows why", () => {
    const { description, refusals } = OPERATIONS.find(({ id }) => id === "getPipeScaling") ?? {};
    expect(description).toMatch(
      /Until all pipes have had a common size, the response is 503: .* `GET …\/pipesCdcScaling\/progress`/,
    );
    expect(refusals?.[503]).toMatch(/no common size yet, as `GET …\/pipesCdcScaling\/progress` shows/);
  });
});
