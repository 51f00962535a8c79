import type { Router } from "express";
import type { Service } from "../../../records/service.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { ClusterCache } from "../../cluster/cluster-cache.ts";
import { authorize } from "../../middleware/authorize.ts";
import { methodNotAllowed } from "../../middleware/not-found.ts";
import { sendExposition } from "../../middleware/respond.ts";
import type { Operation } from "../../openapi/operation.ts";
import { expressPaths, type PathAliases } from "../../path-aliases.ts";
import { organizationParam, serviceParams, type TenantRecords } from "../path-params.ts";
import { createRouter } from "../router.ts";
import { exposition } from "./exposition.ts";

const FORMAT =
  "in the text format of Prometheus, for a Prometheus of your own. A scrape is served from memory, and counts as one request toward the rate limit of the key. A service that has never had a database pipe has no series.";

const EXAMPLE = `# HELP pipe_scaling_service_updated_pipes Pipes of the service that run the desired size.
# TYPE pipe_scaling_service_updated_pipes gauge
pipe_scaling_service_updated_pipes{service_id="6f1c2a54-9d0b-4c53-8a42-0f8f6b1d2c11",service_name="orders"} 5
`;

export const getOrganizationMetrics = {
  method: "GET",
  path: "/v1/organizations/{organizationId}/prometheus",
  id: "getOrganizationMetrics",
  tag: "Prometheus",
  summary: "Get the metrics of all services of an organization",
  description: `Sizes, pipes, state and compute units of every service of the organization, ${FORMAT} A service whose state cannot be read at the moment has none either; if that is true of all services, the status is 503.`,
  exposition: EXAMPLE,
  refusals: { 404: "The organization does not exist, or the key belongs to another one." },
} as const satisfies Operation;

export const getServiceMetrics = {
  method: "GET",
  path: "/v1/organizations/{organizationId}/services/{serviceId}/prometheus",
  id: "getServiceMetrics",
  tag: "Prometheus",
  summary: "Get the metrics of a service",
  description: `Sizes, pipes, state and compute units of the service, ${FORMAT}`,
  exposition: EXAMPLE,
  refusals: {
    404: "The organization does not exist, or the key belongs to another one; or it has no such service.",
  },
} as const satisfies Operation;

export interface PrometheusDeps {
  readonly cache: TenantRecords & Pick<ClusterCache, "servicesOf" | "scaling" | "hasFreshScalings">;
  readonly clock: Pick<Clock, "now">;
  readonly pathAliases: PathAliases;
}

export function prometheusRouter({ cache, clock, pathAliases }: PrometheusDeps): Router {
  const router = createRouter();
  const observed = (service: Service) => ({ service, scaling: cache.scaling(service.namespace, service.id) });
  router
    .route(expressPaths(getOrganizationMetrics.path, pathAliases))
    .get(authorize, (request, response) => {
      const { id } = organizationParam(request, cache);
      const services = cache.servicesOf(id);
      const fresh = services.filter(({ namespace }) => cache.hasFreshScalings(namespace));
      const served = fresh.length === 0 ? services : fresh;
      sendExposition(response, exposition(served.map(observed), clock.now()));
    })
    .all(methodNotAllowed);
  router
    .route(expressPaths(getServiceMetrics.path, pathAliases))
    .get(authorize, (request, response) => {
      const { service } = serviceParams(request, cache);
      sendExposition(response, exposition([observed(service)], clock.now()));
    })
    .all(methodNotAllowed);
  return router;
}
