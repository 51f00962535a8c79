import { describe, expect, it } from "vitest";
import * as z from "zod";
import { OPERATIONS } from "../../src/api/resources/operations.ts";
import type { ApiResponse } from "./client.ts";
import { clientOfText } from "./environment.ts";
import { setUpApi, setUpEnvironment, setUpTenant } from "./fixtures.ts";

const environment = setUpEnvironment("openapi");
const { organizationId, serviceId, path: scaling, admin } = setUpTenant(environment);
const api = setUpApi(environment);
const { authorization } = admin;
const organization = `/v1/organizations/${organizationId}`;

/** Unlike `api.send`, does not parse the body as JSON. */
async function get(path: string, headers: Record<string, string> = {}) {
  const response = await fetch(`${api.url}${path}`, {
    headers: { "Accept-Encoding": "identity", ...headers },
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

describe("the OpenAPI document", () => {
  it.each(["/openapi.json", "/v1"])("is served at %s without authentication", async (path) => {
    const response = await api.send({ path: `${path}?a` });
    expect(response).toMatchObject({
      status: 200,
      headers: {
        "content-type": "application/json",
        "cache-control": "no-store",
        "x-request-id": expect.stringMatching(/^[0-9a-f-]{36}$/),
        "x-ratelimit-limit": "10000",
        "x-ratelimit-remaining": "10000",
        "x-content-type-options": "nosniff",
        "content-security-policy": "default-src 'none';frame-ancestors 'none'",
      },
      body: { openapi: "3.1.0" },
    });
    const line = api.log.find(({ requestId }) => requestId === response.headers["x-request-id"]);
    expect(line).toMatchObject({ status: 200, route: path });
    expect(line).not.toHaveProperty("apiKey");
    const head = await api.send({ method: "HEAD", path });
    expect(head).toMatchObject({ status: 200, text: "" });
    expect(head.headers["content-length"]).toBe(response.headers["content-length"]);
  });

  it("has exactly the operations of the contract, with the methods that the router allows", async () => {
    const { paths } = z
      .object({
        paths: z.record(z.string(), z.record(z.string(), z.looseObject({ operationId: z.string() }))),
      })
      .parse((await api.send({ path: "/openapi.json" })).body);
    const operations = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { operationId }]) => ({ path, method, operationId })),
    );
    expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(OPERATIONS.length);
    expect(operations.length).toBe(OPERATIONS.length);
    for (const [template, methods] of Object.entries(paths)) {
      const path = template.replaceAll(/\{\w+\}/g, "none");
      const { status, headers } = await api.send({ method: "POST", path, authorization });
      expect(status).toBe(405);
      const allowed = String(headers["allow"])
        .toLowerCase()
        .split(", ")
        .filter((method) => method !== "head");
      expect(Object.keys(methods).sort()).toEqual(allowed);
    }
  });

  it.each<[string, string, string, object?]>([
    ["/v1/organizations", "get", "/v1/organizations"],
    ["/v1/organizations/{organizationId}/keys", "get", `${organization}/keys`],
    [
      "/v1/organizations/{organizationId}/services/{serviceId}/backupConfiguration",
      "patch",
      `${organization}/services/${serviceId}/backupConfiguration`,
      { backupPeriodInHours: null, backupStartTime: "2:00" },
    ],
    [
      "/v1/organizations/{organizationId}/services/{serviceId}/pipesCdcScaling",
      "patch",
      scaling,
      { replicaMemoryGb: 16 },
    ],
  ])("describes the response of %s %s", async (template, method, path, body) => {
    const headers = { "Content-Type": "application/merge-patch+json" };
    const text = body && JSON.stringify(body);
    const done = await api.send({
      method: method.toUpperCase(),
      path,
      authorization,
      headers,
      body: text,
    });
    expect(done.status).toBe(200);
    const refused = await api.send({ method: method.toUpperCase(), path });
    const { body: document } = await api.send({ path: "/openapi.json" });
    expect(schemaOf(document, template, method, done).parse(done.body)).toEqual(done.body);
    expect(schemaOf(document, template, method, refused).parse(refused.body)).toEqual(refused.body);
  });

  it.each(["/openapi.json", "/v1"])("can be read at %s by pages of other origins", async (path) => {
    const response = await api.send({ path, headers: { Origin: "https://editor.example" } });
    expect(response).toMatchObject({ status: 200, headers: { "access-control-allow-origin": "*" } });
  });

  it.each(["/v1/organizations", "/docs", "/docs/start.js", "/none"])(
    "is the only response that other origins may read: %s has no header of CORS",
    async (path) => {
      const headers = { Origin: "https://editor.example" };
      const { headers: received } = await fetch(`${api.url}${path}`, {
        headers: { ...headers, Authorization: authorization },
      });
      expect([...received.keys()].filter((name) => name.startsWith("access-control-"))).toEqual([]);
    },
  );

  it("allows only GET and HEAD, and under /v1 only authenticated callers get 405", async () => {
    for (const path of ["/openapi.json", "/docs", "/docs/start.js"]) {
      const response = await api.send({ method: "POST", path });
      expect(response).toMatchObject({ status: 405, headers: { allow: "GET, HEAD" }, body: { status: 405 } });
    }
    expect((await api.send({ method: "POST", path: "/v1" })).status).toBe(401);
    const response = await api.send({ method: "POST", path: "/v1", authorization });
    expect(response).toMatchObject({ status: 405, headers: { allow: "GET, HEAD" } });
    expect((await api.send({ path: "/v1/" })).status).toBe(401);
  });
});

/** Returns the schema of a response with the schemas that it references. */
function schemaOf(document: unknown, path: string, method: string, { status }: ApiResponse): z.ZodType {
  const { paths, components } = Object(document);
  const described = paths[path][method].responses[status];
  const response = described.$ref ? components.responses[described.$ref.split("/").at(-1)] : described;
  const { schema } = response.content["application/json"];
  const text = JSON.stringify({ ...schema, $defs: components.schemas });
  return z.fromJSONSchema(JSON.parse(text.replaceAll("#/components/schemas/", "#/$defs/")));
}

describe("/docs", () => {
  const types = [
    ["/docs", "text/html; charset=utf-8", "/docs"],
    ["/docs/start.js", "text/javascript; charset=utf-8", "/docs/{asset}"],
    ["/docs/page.css", "text/css; charset=utf-8", "/docs/{asset}"],
    ["/docs/swagger-ui.css", "text/css; charset=utf-8", "/docs/{asset}"],
    ["/docs/swagger-ui-bundle.js", "text/javascript; charset=utf-8", "/docs/{asset}"],
  ] as const;

  it.each(types)(
    "serves %s as %s without authentication, with a strict Content-Security-Policy",
    async (path, type, route) => {
      const { status, headers } = await get(path);
      expect(status).toBe(200);
      expect(Object.fromEntries(headers)).toMatchObject({
        "content-type": type,
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        "x-ratelimit-reset": "0",
        "content-security-policy":
          "default-src 'none';script-src 'self';style-src 'self';img-src 'self' data:;connect-src 'self';base-uri 'none';form-action 'none';frame-ancestors 'none'",
      });
      const line = api.log.find(({ requestId }) => requestId === headers.get("x-request-id"));
      expect(line).toMatchObject({ status: 200, route });
      // Scrapes within half a second share one text.
      const scrape = async () => (await clientOfText(api.opsUrl)("/metrics")).text;
      await expect.poll(scrape).toContain(`route="${route}",code="200"`);
    },
  );

  it.each(["gzip", "br, GZIP;q=0.5", "deflate,gzip"])(
    "is compressed for the Accept-Encoding %j",
    async (encodings) => {
      const path = "/docs/swagger-ui.css";
      const plain = await get(path);
      const response = await fetch(`${api.url}${path}`, { headers: { "Accept-Encoding": encodings } });
      expect(response.headers.get("content-encoding")).toBe("gzip");
      expect(Number(response.headers.get("content-length"))).toBeLessThan(plain.text.length / 4);
      // fetch decompresses the body.
      expect(await response.text()).toBe(plain.text);
    },
  );

  it.each(["", "br", "gzip;q=0", "gzip;q=0.000", "gzipped", "*"])(
    "is not compressed for the Accept-Encoding %j",
    async (encodings) => {
      const { headers, text } = await get("/docs", { "Accept-Encoding": encodings });
      expect(headers.get("content-encoding")).toBeNull();
      expect(headers.get("vary")).toBe("Accept-Encoding");
      expect(text).toContain("<title>pipe-scaling API</title>");
    },
  );

  it.each(["/docs/", "/docs/index.html", "/docs/none.js", "/docs/../docs", "/Docs", "/docs/__proto__"])(
    "returns 404 for %s",
    async (path) => {
      expect(await api.send({ path })).toMatchObject({ status: 404, body: { status: 404 } });
    },
  );
});
