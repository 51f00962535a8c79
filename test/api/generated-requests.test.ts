import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { MEDIA_TYPES } from "../../src/api/middleware/json-body.ts";
import { OPERATIONS } from "../../src/api/resources/operations.ts";
import type { KubeObject } from "../../src/kube/objects.ts";
import { CONFIG_MAPS, collectionPath } from "../../src/kube/paths.ts";
import { RESOURCE_LABEL } from "../../src/records/labels.ts";
import { membersConfigMapName } from "../../src/records/members.ts";
import { type JsonSchema, jsonSchema, Schemas } from "../support/json-schema.ts";
import { numRuns } from "../support/num-runs.ts";
import type { ApiRequest, ApiResponse } from "./client.ts";
import { PIPE_SCALINGS } from "./environment.ts";
import { setUpApi, setUpEnvironment, setUpTenant } from "./fixtures.ts";

/*
 * Generates valid and invalid requests from the OpenAPI document. Every response must match the document and must not
 * be a 5xx, and a rejected request must change nothing.
 */

const answerSchema = z.object({
  content: z.partialRecord(z.enum(["application/json", "text/plain"]), z.object({ schema: jsonSchema })),
});
const operationSchema = z.object({
  operationId: z.string(),
  parameters: z.array(z.object({ name: z.string(), in: z.literal("path"), schema: jsonSchema })).default([]),
  requestBody: z
    .object({ content: z.strictObject({ "application/json": z.object({ schema: jsonSchema }) }) })
    .optional(),
  responses: z.record(z.string(), z.union([z.object({ $ref: z.string() }), answerSchema])),
});
const documentSchema = z.object({
  paths: z.record(z.string(), z.partialRecord(z.enum(["get", "put", "patch", "delete"]), operationSchema)),
  components: z.object({
    schemas: z.record(z.string(), jsonSchema),
    responses: z.record(z.string(), answerSchema),
  }),
});

interface Operation extends z.infer<typeof operationSchema> {
  readonly method: string;
  readonly path: string;
  readonly body: JsonSchema | undefined;
}

const environment = setUpEnvironment("generated");
const { organizationId, serviceId, admin } = setUpTenant(environment);
const api = setUpApi(environment);
let operations: readonly Operation[];
let schemas: Schemas;
let sharedResponses: z.infer<typeof documentSchema>["components"]["responses"];

beforeAll(async () => {
  await environment.addRecord({
    kind: "ConfigMap",
    metadata: { name: membersConfigMapName(organizationId) },
    data: {},
  });
  const { paths, components } = documentSchema.parse((await api.send({ path: "/openapi.json" })).body);
  sharedResponses = components.responses;
  schemas = new Schemas(
    Object.fromEntries(
      Object.entries(components.schemas).map(([name, each]) => [`#/components/schemas/${name}`, each]),
    ),
  );
  operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      method: method.toUpperCase(),
      path,
      body: operation.requestBody?.content["application/json"].schema,
    })),
  );
});

/** Generates existing IDs, in upper or lower case, for each path parameter. */
function ownParameters({ parameters }: Operation): fc.Arbitrary<Record<string, string>> {
  const own: Record<string, string> = { organizationId, serviceId };
  const anyCase = (text: string) => fc.constantFrom(text, text.toUpperCase());
  return fc.record(Object.fromEntries(parameters.map(({ name }) => [name, anyCase(own[name] ?? "unknown")])));
}

function validParameters({ parameters }: Operation): fc.Arbitrary<Record<string, string>> {
  return fc.record(
    Object.fromEntries(parameters.map(({ name, schema }) => [name, schemas.valid(schema).map(String)])),
  );
}

function invalidParameters(operation: Operation): fc.Arbitrary<Record<string, string>> {
  const spoilt = operation.parameters.map(({ name, schema }) =>
    fc
      .tuple(ownParameters(operation), schemas.invalid(schema).map(asText))
      .filter(([, text]) => !schemas.conforms(schema, text) && text.isWellFormed())
      .map(([own, text]) => ({ ...own, [name]: text })),
  );
  return fc.oneof(...spoilt);
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function pathOf({ path }: Operation, parameters: Readonly<Record<string, string>>): string {
  return path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(parameters[name] ?? ""));
}

async function send(
  { method }: Operation,
  send: Omit<ApiRequest, "method">,
  type?: string,
): Promise<ApiResponse> {
  const headers = type === undefined ? {} : { "Content-Type": type };
  return api.send({ method, authorization: admin.authorization, headers, ...send });
}

/** Returns the documented media type and schema of a response with this status. */
function documented({ responses }: Operation, status: number): [type: string, JsonSchema] {
  const found = responses[status] ?? responses["default"];
  const response =
    found && "$ref" in found ? sharedResponses[found.$ref.replace("#/components/responses/", "")] : found;
  if (!response) throw new Error(`the document has no response ${status}`);
  const [[type, { schema }] = ["", { schema: {} }], ...others] = Object.entries(response.content);
  expect(others).toEqual([]);
  return [type, schema];
}

function expectDocumented(operation: Operation, response: ApiResponse): void {
  const { status, body, text, headers } = response;
  expect(status, text).toBeLessThan(500);
  const [type, schema] = documented(operation, status);
  const isJson = type === "application/json";
  expect(headers["content-type"]).toBe(isJson ? type : "text/plain; version=0.0.4; charset=utf-8");
  expect(schemas.conforms(schema, isJson ? body : text), `${status} ${text}`).toBe(true);
  expect(text.length).toBeLessThan(status === 200 ? 4000 : 600);
  expect(text).not.toMatch(/node:|\.ts:|\bat .*\(/);
}

function expectRefused(operation: Operation, response: ApiResponse, statuses: readonly number[]): void {
  expectDocumented(operation, response);
  expect(statuses, `${operation.operationId}: ${response.status} ${response.text}`).toContain(
    response.status,
  );
}

/** Returns the version of every object that the API can write, except key usage, which it writes at any time. */
async function versions(): Promise<string[]> {
  const lists = await Promise.all([
    environment.admin.json<{ items: KubeObject[] }>({
      path: collectionPath(CONFIG_MAPS, environment.records),
      query: { labelSelector: RESOURCE_LABEL },
    }),
    environment.admin.json<{ items: KubeObject[] }>({
      path: collectionPath(PIPE_SCALINGS, environment.pipes),
    }),
  ]);
  return lists
    .flatMap(({ items }) => items)
    .filter(({ metadata }) => !metadata.name.startsWith("key-usage-"))
    .map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`);
}

async function changingNothing(run: () => Promise<void>): Promise<void> {
  const before = await versions();
  await run();
  expect(await versions()).toEqual(before);
}

/**
 * An earlier request may have stored a start time, which only some periods allow, or a period or a retention, one of
 * which would be too long for the other.
 */
function withoutStored(body: unknown): object {
  const given = Object(body);
  const isBackup = Object.keys(given).some((name) => name.startsWith("backup"));
  const { backupPeriodInHours: period } = given;
  const retention = period === undefined || period === null ? null : 1080;
  const absent = {
    backupPeriodInHours: null,
    backupRetentionPeriodInHours: retention,
    backupStartTime: null,
  };
  return isBackup ? { ...absent, ...given } : given;
}

function withBody(): readonly (Operation & { readonly body: JsonSchema })[] {
  return operations.flatMap((each) => (each.body ? [{ ...each, body: each.body }] : []));
}

describe("a request that the OpenAPI document allows", () => {
  it("succeeds with a documented response", async () => {
    for (const operation of withBody()) {
      const bodies = schemas.valid(operation.body);
      const types = fc.constantFrom(...MEDIA_TYPES);
      await fc.assert(
        fc.asyncProperty(ownParameters(operation), bodies, types, async (parameters, body, type) => {
          const sent = JSON.stringify(withoutStored(body));
          const response = await send(operation, { path: pathOf(operation, parameters), body: sent }, type);
          expectDocumented(operation, response);
          expect(response.status, `${sent} ${response.text}`).toBe(200);
        }),
        { numRuns: numRuns(100) },
      );
    }
  });

  it("gets 404 for absent objects and changes nothing", async () => {
    await changingNothing(async () => {
      for (const operation of operations.filter(({ parameters }) => parameters.length > 0)) {
        const bodies = operation.body
          ? schemas.valid(operation.body).map((each) => JSON.stringify(each))
          : fc.constant(undefined);
        await fc.assert(
          fc.asyncProperty(validParameters(operation), bodies, async (parameters, body) => {
            const path = pathOf(operation, {
              ...parameters,
              organizationId: parameters["organizationId"] ?? "",
            });
            const response = await send(operation, { path, body }, MEDIA_TYPES[0]);
            expectRefused(operation, response, [404]);
          }),
          { numRuns: numRuns(50) },
        );
      }
    });
  });
});

describe("a request that the OpenAPI document does not allow", () => {
  it("is rejected if its body is invalid", async () => {
    await changingNothing(async () => {
      for (const operation of withBody()) {
        const bodies = schemas.invalid(operation.body).map((each) => JSON.stringify(each));
        await fc.assert(
          fc.asyncProperty(ownParameters(operation), bodies, async (parameters, body) => {
            const path = pathOf(operation, parameters);
            expectRefused(operation, await send(operation, { path, body }, MEDIA_TYPES[0]), [400]);
          }),
          { numRuns: numRuns(400) },
        );
      }
    });
  });

  it("is rejected if its body is malformed or truncated JSON", async () => {
    const isJson = (text: string) => {
      try {
        JSON.parse(text);
        return true;
      } catch {
        return false;
      }
    };
    await changingNothing(async () => {
      for (const operation of withBody()) {
        const whole = schemas.valid(operation.body).map((each) => JSON.stringify(each));
        const spoilt = fc.oneof(
          fc.tuple(whole, fc.nat()).map(([text, at]) => text.slice(0, at % text.length)),
          fc.tuple(whole, fc.nat(), fc.string({ minLength: 1 })).map(([text, at, more]) => {
            const cut = at % (text.length + 1);
            return text.slice(0, cut) + more + text.slice(cut);
          }),
          fc.string(),
        );
        const bytes = fc.oneof(
          spoilt.filter((text) => !isJson(text)).map((text) => Buffer.from(text)),
          fc
            .uint8Array({ maxLength: 64 })
            .map((raw) => Buffer.from(raw))
            .filter((raw) => !isJson(raw.toString())),
        );
        await fc.assert(
          fc.asyncProperty(ownParameters(operation), bytes, async (parameters, body) => {
            const path = pathOf(operation, parameters);
            expectRefused(operation, await send(operation, { path, body }, MEDIA_TYPES[0]), [400]);
          }),
          { numRuns: numRuns(200) },
        );
      }
    });
  });

  it("is rejected if its media type is not allowed", async () => {
    await changingNothing(async () => {
      for (const operation of withBody()) {
        const types = fc
          .oneof(
            fc.stringMatching(/^[a-z]{1,12}\/[a-z+.-]{1,20}$/),
            fc.constantFrom(
              "application/json; charset=latin1",
              "application/jsonx",
              "json",
              ";",
              "text/json",
            ),
          )
          .filter((type) => !MEDIA_TYPES.includes(type));
        await fc.assert(
          fc.asyncProperty(ownParameters(operation), types, async (parameters, type) => {
            const path = pathOf(operation, parameters);
            const body = JSON.stringify({ replicaCpuMillicores: 4000 });
            expectRefused(operation, await send(operation, { path, body }, type), [415]);
          }),
          { numRuns: numRuns(50) },
        );
      }
    });
  });

  it("is rejected if its path parameters are invalid", async () => {
    await changingNothing(async () => {
      for (const operation of operations.filter(({ parameters }) => parameters.length > 0)) {
        await fc.assert(
          fc.asyncProperty(invalidParameters(operation), async (parameters) => {
            // With an empty parameter, the request has a different path.
            const isEmpty = Object.values(parameters).includes("");
            const response = await send(operation, { path: pathOf(operation, parameters) });
            expectRefused(operation, response, [isEmpty ? 404 : 400]);
          }),
          { numRuns: numRuns(100) },
        );
      }
    });
  });

  it("is rejected if it is a write with a query string", async () => {
    await changingNothing(async () => {
      for (const operation of operations.filter(({ method }) => method !== "GET")) {
        const bodies = operation.body ? schemas.valid(operation.body) : fc.constant({});
        const queries = fc.oneof(fc.constantFrom("dryRun=true", "?", "=", "&"), fc.webQueryParameters());
        await fc.assert(
          fc.asyncProperty(ownParameters(operation), bodies, queries, async (parameters, body, query) => {
            fc.pre(query !== "");
            const path = `${pathOf(operation, parameters)}?${query}`;
            const sent = JSON.stringify(body);
            const response = await send(operation, { path, body: sent }, MEDIA_TYPES[0]);
            expectRefused(operation, response, [400]);
          }),
          { numRuns: numRuns(50) },
        );
      }
    });
  });

  it("is rejected if its method is not allowed", async () => {
    const allowed = (path: string) =>
      operations.filter((each) => each.path === path).map(({ method }) => method);
    await changingNothing(async () => {
      for (const operation of operations) {
        const parameters = { organizationId, serviceId, userId: randomUUID() };
        for (const method of ["GET", "PATCH", "DELETE", "POST", "PUT", "OPTIONS", "TRACE"]) {
          if (allowed(operation.path).includes(method)) continue;
          const response = await send({ ...operation, method }, { path: pathOf(operation, parameters) });
          expectRefused(operation, response, [405]);
          expect(response.headers["allow"]?.split(", ")).toEqual(
            expect.arrayContaining(allowed(operation.path)),
          );
        }
      }
    });
  });
});

describe("the OpenAPI document", () => {
  it("contains exactly the operations of the contract", () => {
    expect(operations.map(({ operationId }) => operationId).toSorted()).toEqual(
      OPERATIONS.map(({ id }) => id).toSorted(),
    );
  });
});
