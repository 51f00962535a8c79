import type { RequestListener } from "node:http";
import type { Clock } from "../runtime/clock.ts";
import type { Answers } from "./answers.ts";
import type { BackupDeps } from "./backup.ts";
import type { Caches } from "./caches.ts";
import { ClientAddresses } from "./client-address.ts";
import { docsPages } from "./docs.ts";
import { type Exchange, openExchange } from "./exchange.ts";
import { Gate, requireRole } from "./gate.ts";
import { pathOf, requireOneReading } from "./http-syntax.ts";
import type { Limits } from "./limits.ts";
import type { MembersDeps } from "./members.ts";
import type { Page } from "./page.ts";
import { methodNotAllowed, nothingThere, toProblem } from "./problem.ts";
import { backupRoutes } from "./routes/backup.ts";
import { keyRoutes } from "./routes/keys.ts";
import { memberRoutes } from "./routes/members.ts";
import { organizationRoutes } from "./routes/organizations.ts";
import { pipeScalingRoutes } from "./routes/pipe-scaling.ts";
import { type PathAliases, type Route, Router } from "./routes.ts";
import type { ScalingDeps } from "./scaling.ts";

/** What the operations need. */
export interface RouteDeps extends Omit<ScalingDeps & BackupDeps & MembersDeps, "caches"> {
  readonly caches: Omit<Caches, "run" | "notSynced">;
  readonly clock: Clock;
}

export interface AppDeps extends RouteDeps {
  readonly answers: Answers;
  /** Shown to whoever is asked for credentials. */
  readonly realm: string;
  /** The same that `answers` has. */
  readonly limits?: Limits | undefined;
  /** Without it a client's address is the connection's. */
  readonly addresses?: ClientAddresses | undefined;
  readonly pathAliases?: PathAliases | undefined;
}

/** Every operation there is. */
export function routesOf(deps: RouteDeps): readonly Route[] {
  const { caches, clock } = deps;
  return [
    ...organizationRoutes(caches),
    ...keyRoutes(caches),
    ...memberRoutes(caches, deps),
    ...backupRoutes(caches, deps),
    ...pipeScalingRoutes(caches, clock, deps),
  ];
}

/**
 * The management API, as a listener for an HTTP server of any kind. Everything it touches is an argument.
 *
 * @throws Error with a sentence for the user if a path alias cannot be one
 */
export function createApp(deps: AppDeps): RequestListener {
  const { answers, clock, addresses = new ClientAddresses() } = deps;
  const gate = new Gate(deps);
  const routes = routesOf(deps);
  const router = new Router(routes, deps.pathAliases);
  const pages = docsPages(routes);

  /** The order of the checks is the contract's (api-contract, part 2), so that no status leaks what a later one protects. */
  function serve(exchange: Exchange, path: string): unknown {
    const { request, requestId } = exchange;
    const key = gate.admit(exchange);
    const { route, parameters } = router.match(request.method ?? "", path);
    exchange.route = route.path;
    requireRole(key, route.method);
    return route.serve({ requestId, request, key, parameters });
  }

  /** Anybody may read it; what else is asked of `/v1` is behind the gate as all that is under it. */
  function pageAt(path: string, exchange: Exchange): Page {
    const { method } = exchange.request;
    const page = pages.get(path);
    if (page && (method === "GET" || method === "HEAD")) {
      exchange.route = page.route;
      return page;
    }
    if (path === "/v1") gate.admit(exchange);
    throw page ? methodNotAllowed("GET, HEAD") : nothingThere();
  }

  return (request, response) => {
    const exchange = openExchange(request, response, clock.monotonic(), addresses.of(request));
    const fail = (error: unknown) => answers.failure(exchange, toProblem(error));
    try {
      requireOneReading(request);
      const path = pathOf(request.url ?? "");
      if (!path.startsWith("/v1/")) {
        answers.page(exchange, pageAt(path, exchange));
        return;
      }
      const result = serve(exchange, path);
      if (result instanceof Promise) result.then((value) => answers.success(exchange, value)).catch(fail);
      else answers.success(exchange, result);
    } catch (error) {
      fail(error);
    }
  };
}
