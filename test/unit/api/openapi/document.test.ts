import { Validator } from "@seriousme/openapi-schema-validator";
import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import * as z from "zod";
import { openApiDocument } from "../../../../src/api/openapi/document.ts";
import type { Operation } from "../../../../src/api/openapi/operation.ts";
import {
  backupConfiguration,
  backupConfigurationPatch,
} from "../../../../src/api/resources/backup/schema.ts";
import { apiKey } from "../../../../src/api/resources/keys/schema.ts";
import { organization } from "../../../../src/api/resources/organizations/schema.ts";
import { pipeScaling, pipeScalingPatch } from "../../../../src/api/resources/pipe-scaling/schema.ts";

const operation: Operation = {
  method: "PATCH",
  path: "/v1/services/{serviceId}",
  id: "changeService",
  tag: "Service",
  summary: "Change a service",
  description: "Changes it.",
  body: pipeScalingPatch,
  result: pipeScaling,
  refusals: { 404: "There is none.", 409: "It is busy." },
};
/** Brings every object of the contract into the document. */
const others = [organization, apiKey, backupConfiguration].map(
  (result, at): Operation => ({
    ...operation,
    path: `/v1/others/${at}`,
    id: `other${at}`,
    result,
    body: backupConfigurationPatch,
    isBeta: true,
  }),
);

type Node = Readonly<Record<string, unknown>>;

/** As a client gets it. */
const document: Node = JSON.parse(JSON.stringify(openApiDocument([operation, ...others])));

function at(path: string): Node {
  const found = path.split("/").reduce<Node | undefined>((node, step) => {
    const next = node?.[step.replaceAll("~1", "/")];
    return typeof next === "object" && next !== null ? Object(next) : undefined;
  }, document);
  if (!found) throw new Error(`the document has nothing at ${path}`);
  return found;
}

function* nodes(of: unknown): Generator<Node> {
  if (typeof of !== "object" || of === null) return;
  yield Object(of);
  for (const value of Object.values(of)) yield* nodes(value);
}

const PATCH = "paths/~1v1~1services~1{serviceId}/patch";
const schemaNames = Object.keys(at("components/schemas"));

describe("an operation", () => {
  it("is told with all that its route says", () => {
    expect(at(PATCH)).toMatchObject({
      operationId: "changeService",
      tags: ["Service"],
      summary: "Change a service",
      description: "Changes it.",
      parameters: [
        { in: "path", name: "serviceId", required: true, schema: { type: "string", format: "uuid" } },
      ],
      requestBody: { required: true },
    });
    expect(Object.keys(at(`${PATCH}/responses`))).toEqual([
      "200",
      "400",
      "401",
      "403",
      "404",
      "409",
      "413",
      "415",
      "429",
      "500",
      "503",
      "default",
    ]);
    expect(at(`${PATCH}/responses/409`)).toMatchObject({
      description: "It is busy.",
      content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
    });
  });

  it("that is in beta says so, also to programs", () => {
    expect(at(PATCH)).not.toHaveProperty("x-beta");
    expect(at("paths/~1v1~1others~10/patch")).toMatchObject({
      "x-beta": true,
      description: "**Beta**: the contract is stable. Changes it.",
    });
  });

  it("answers 200 in the envelope, and without a result in one that has none", () => {
    const envelope = `${PATCH}/responses/200/content/application~1json/schema`;
    expect(at(envelope)).toMatchObject({
      required: ["requestId", "status", "result"],
      properties: { result: { $ref: "#/components/schemas/PipeScaling" } },
    });
    const { body: _body, result: _result, ...rest } = operation;
    const bare = openApiDocument([rest]);
    expect(JSON.stringify(bare)).not.toContain('"result"');
    expect(bare.paths?.[operation.path]?.patch).not.toHaveProperty("requestBody");
  });

  it("cannot have a parameter that nobody describes", () => {
    expect(() => openApiDocument([{ ...operation, path: "/v1/things/{thingId}" }])).toThrow("thingId");
  });

  it.each([
    ["Unauthenticated", "WWW-Authenticate"],
    ["TooManyRequests", "Retry-After"],
    ["Unavailable", "Retry-After"],
    ["UnsupportedMediaType", "Accept-Patch"],
    ["Refused", "Allow"],
  ])("is answered %s with %s, beside the headers of all", (response, header) => {
    const names = ["X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", header];
    expect(Object.keys(at(`components/responses/${response}/headers`))).toEqual(names);
  });
});

describe("the document", () => {
  test("is one of OpenAPI 3.1, of the definition that is published", () => {
    expect(document).toMatchObject({
      openapi: expect.stringMatching(/^3\.1\.\d$/),
      info: { title: "pipe-scaling API", version: "1.0" },
      servers: [{ url: "/" }],
      security: [{ apiKey: [] }],
      components: { securitySchemes: { apiKey: { type: "http", scheme: "basic" } } },
    });
    expect(document["tags"]).toMatchObject(
      [
        "Organization",
        "User management",
        "Billing",
        "Service",
        "Backup",
        "OpenAPI",
        "Prometheus",
        "Pipes",
      ].map((name) => ({ name, description: expect.any(String) })),
    );
  });

  test("passes OpenAPI's own schema", async () => {
    const validator = new Validator();
    expect(await validator.validate(structuredClone({ ...document }))).toEqual({ valid: true });
    expect(validator.version).toBe("3.1");
    const { info: _, ...spoilt } = document;
    expect(await validator.validate(spoilt)).toMatchObject({ valid: false });
  });

  test("refers to nothing that it does not have", () => {
    const references = [...nodes(document)].flatMap(({ $ref }) => (typeof $ref === "string" ? [$ref] : []));
    expect(references.length).toBeGreaterThan(20);
    for (const reference of references) expect(at(reference.replace("#/", ""))).toBeDefined();
  });

  test("names each object of the contract", () => {
    expect(schemaNames.sort()).toEqual([
      "ApiKey",
      "BackupConfiguration",
      "BackupConfigurationPatch",
      "Error",
      "Organization",
      "PipeScaling",
      "PipeScalingPatch",
    ]);
  });

  test.each(schemaNames)("has a schema of %s that a validator takes, and its own examples pass", (name) => {
    const schema = at(`components/schemas/${name}`);
    for (const node of nodes(schema)) {
      const { examples, ...rest } = node;
      if (!Array.isArray(examples)) continue;
      const validator = z.fromJSONSchema(rest);
      for (const example of examples) expect(validator.safeParse(example)).toMatchObject({ success: true });
    }
    expect(() => z.fromJSONSchema(schema)).not.toThrow();
    expect(schema).toMatchObject({ type: "object", additionalProperties: false });
  });
});

describe("the bodies that it describes are those that are taken", () => {
  const described = (name: string) => z.fromJSONSchema(at(`components/schemas/${name}`));

  const sizeField = fc.oneof(
    fc.constantFrom(1000, 4000, 24_000, 25_000, 0, 4, 16, 96, 100, 1500, 2.5),
    fc.constantFrom(null, "4000", true, undefined),
  );
  const backupField = fc.oneof(
    fc.constantFrom(6, 7, 24, 48, 72, 1080, 1104, 0, 25),
    fc.constantFrom(null, "2:00", "02:00", "24:00", "2:30", "02:00\n", false, undefined),
  );

  /** An absent field is no field, and an unknown one may come with them. */
  function body(names: readonly string[], field: fc.Arbitrary<unknown>) {
    const fields = fc.tuple(...names.map(() => field), fc.boolean());
    return fields.map((values): object => {
      const pairs = names.map((name, at): [string, unknown] => [name, values[at]]);
      if (values.at(-1) === true && values[0] === null) pairs.push(["unknown", 1]);
      return JSON.parse(JSON.stringify(Object.fromEntries(pairs)));
    });
  }

  test("of a pipe scaling, but for the ratio", () => {
    const validator = described("PipeScalingPatch");
    fc.assert(
      fc.property(body(["replicaCpuMillicores", "replicaMemoryGb"], sizeField), (sent) => {
        const { error } = pipeScalingPatch.safeParse(sent);
        const isOnlyOffRatio = error?.issues.every(({ message }) =>
          message.includes("times the number of cores"),
        );
        expect(validator.safeParse(sent).success).toBe(error === undefined || isOnlyOffRatio);
      }),
      { numRuns: 2000 },
    );
  });

  test("of a backup configuration", () => {
    const validator = described("BackupConfigurationPatch");
    const names = ["backupPeriodInHours", "backupRetentionPeriodInHours", "backupStartTime"];
    fc.assert(
      fc.property(body(names, backupField), (sent) => {
        expect(validator.safeParse(sent).success).toBe(backupConfigurationPatch.safeParse(sent).success);
      }),
      { numRuns: 2000 },
    );
  });
});
