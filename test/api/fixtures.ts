import { afterAll, beforeAll } from "vitest";
import type { ApiSettings } from "../../src/settings/api.ts";
import { ApiEnvironment, newTenant, type RunningApi, type Tenant, uniqueNamespaces } from "./environment.ts";

/*
 * These functions register hooks of a test file. The hooks run in the order of the calls, so an API knows all records
 * from earlier calls when it is ready. Tests and later hooks can use the returned values.
 *
 *     const environment = setUpEnvironment("backup");
 *     const { organizationId, admin } = setUpTenant(environment);
 *     const api = setUpApi(environment);
 */

/** Creates the namespaces before the tests, and removes them at the end. */
export function setUpEnvironment(name: string): ApiEnvironment {
  const environment = new ApiEnvironment(uniqueNamespaces(name));
  beforeAll(() => environment.create());
  afterAll(() => environment.remove());
  return environment;
}

/** Creates the records of a tenant before the tests. */
export function setUpTenant(environment: ApiEnvironment): Tenant {
  const tenant = newTenant();
  beforeAll(() => environment.addTenant(tenant));
  return tenant;
}

/** Starts an API before the tests, waits until its caches are filled, and stops it at the end. */
export function setUpApi(environment: ApiEnvironment, settings: Partial<ApiSettings> = {}): RunningApi {
  let api: RunningApi;
  beforeAll(async () => {
    api = await environment.startReadyApi(settings);
  });
  afterAll(() => api?.stop());
  return {
    get url() {
      return api.url;
    },
    get opsUrl() {
      return api.opsUrl;
    },
    get log() {
      return api.log;
    },
    send: (request) => api.send(request),
    waitForKey: (authorization) => api.waitForKey(authorization),
    waitForOrganization: (authorization) => api.waitForOrganization(authorization),
    stop: () => api.stop(),
  };
}
