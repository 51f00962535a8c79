import { describe, expect, it } from "vitest";
import type { ApiRequest } from "./client.ts";
import { clientOfText } from "./environment.ts";
import { setUpApi, setUpEnvironment, setUpTenant } from "./fixtures.ts";

const TEMPLATE = "/v1/organizations/{organizationId}/services/{serviceId}/pipesCdcScaling";

const environment = setUpEnvironment("aliases");
const { path: scaling, admin, developer } = setUpTenant(environment);
const api = setUpApi(environment, { pathAliases: new Map([["clickpipesCdcScaling", "pipesCdcScaling"]]) });
const aliased = scaling.replace("pipesCdcScaling", "clickpipesCdcScaling");
const { authorization } = admin;

/** Sends the request and removes the parts of the response that differ between requests. */
async function comparableResponse(send: ApiRequest) {
  const { status, body, headers } = await api.send(send);
  const { allow, "www-authenticate": challenge, "accept-patch": acceptPatch } = headers;
  return {
    status,
    body: { ...Object(body), requestId: undefined },
    headers: [allow, challenge, acceptPatch],
  };
}

const json = { "Content-Type": "application/json" };

describe("a path alias", () => {
  it.each<[number, string, Partial<ApiRequest>]>([
    [200, "a read", { authorization }],
    [200, "HEAD", { authorization, method: "HEAD" }],
    [200, "a write", { authorization, method: "PATCH", headers: json, body: '{"replicaMemoryGb":16}' }],
    [400, "an invalid size", { authorization, method: "PATCH", headers: json, body: "{}" }],
    [401, "a request without a key", {}],
    [403, "a key without permission", { authorization: developer.authorization, method: "PATCH" }],
    [405, "another method", { authorization, method: "DELETE" }],
    [415, "a form", { authorization, method: "PATCH", headers: { "Content-Type": "text/plain" }, body: "a" }],
  ])("returns %i for %s, like the original path", async (status, _what, send) => {
    const direct = await comparableResponse({ path: scaling, ...send });
    expect(direct.status).toBe(status);
    expect(await comparableResponse({ path: aliased, ...send })).toEqual(direct);
  });

  it("is case-sensitive, and works only in the position of its segment", async () => {
    for (const path of [
      scaling.replace("pipesCdcScaling", "clickpipescdcscaling"),
      `/v1/clickpipesCdcScaling`,
    ]) {
      expect((await api.send({ path, authorization })).status).toBe(404);
    }
  });

  it("does not appear in logs, metrics or the OpenAPI document, which use the original path", async () => {
    const { headers } = await api.send({ path: aliased, authorization });
    const line = api.log.find(({ requestId }) => requestId === headers["x-request-id"]);
    expect(line).toMatchObject({ route: TEMPLATE });
    expect((await clientOfText(api.opsUrl)("/metrics")).text).not.toContain("clickpipes");
    expect((await api.send({ path: "/openapi.json" })).text).not.toContain("clickpipes");
  });
});
