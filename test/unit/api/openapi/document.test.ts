import { Validator } from "@seriousme/openapi-schema-validator";
import { Ajv2020 } from "ajv/dist/2020.js";
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
import { OPERATIONS } from "../../../../src/api/resources/operations.ts";
import { organization } from "../../../../src/api/resources/organizations/schema.ts";
import { pipeScaling, pipeScalingPatch } from "../../../../src/api/resources/pipe-scaling/schema.ts";
import { BACKUP_PERIODS_HOURS } from "../../../../src/domain/backup-policy.ts";
import { DEFAULT_MAXIMUM_CORES, sizeOfCores } from "../../../../src/domain/size.ts";
import { jsonSchema, Schemas } from "../../../support/json-schema.ts";

const MAXIMUM = sizeOfCores(DEFAULT_MAXIMUM_CORES);

const operation: Operation = {
  method: "PATCH",
  path: "/v1/services/{serviceId}",
  id: "changeService",
  tag: "Service",
  summary: "Change a service",
  description: "Changes it.",
  body: { schema: pipeScalingPatch, example: { replicaMemoryGb: 16 } },
  result: pipeScaling,
  refusals: { 404: "There is none.", 409: "It is busy." },
};
/** Operations that add the other schemas of the contract to the document. */
const others = [organization, apiKey, backupConfiguration].map(
  (result, at): Operation => ({
    ...operation,
    path: `/v1/others/${at}`,
    id: `other${at}`,
    result,
    body: { schema: () => backupConfigurationPatch, example: { backupPeriodInHours: 24 } },
    isBeta: true,
  }),
);

type Node = Readonly<Record<string, unknown>>;

/** The document as a client receives it. */
const document: Node = JSON.parse(JSON.stringify(openApiDocument([operation, ...others])));

/** The document of all operations. */
const complete: Node = JSON.parse(JSON.stringify(openApiDocument(OPERATIONS)));

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
  it("contains everything that its route declares", () => {
    expect(at(PATCH)).toMatchObject({
      operationId: "changeService",
      tags: ["Service"],
      summary: "Change a service",
      description: "Changes it.",
      parameters: [
        { in: "path", name: "serviceId", required: true, schema: { type: "string", format: "uuid" } },
      ],
      requestBody: {
        required: true,
        content: {
          "application/json": {
            schema: { $ref: "#/components/schemas/PipeScalingPatch" },
            example: { replicaMemoryGb: 16 },
          },
        },
      },
    });
    expect(Object.keys(at(`${PATCH}/responses`))).toEqual([
      "200",
      "400",
      "401",
      "403",
      "404",
      "409",
      "412",
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

  it("has the responses 412 and 413 if it writes, even without a body, and 415 if it has a body", () => {
    for (const { method, path, id, body } of OPERATIONS) {
      const found = Object(complete["paths"])[path][method.toLowerCase()].responses;
      const expected = [...(method === "GET" ? [] : ["412", "413"]), ...(body ? ["415"] : [])];
      expect(
        ["412", "413", "415"].filter((status) => status in found),
        id,
      ).toEqual(expected);
    }
  });

  it("is marked as beta in its description and with x-beta", () => {
    expect(at(PATCH)).not.toHaveProperty("x-beta");
    expect(at("paths/~1v1~1others~10/patch")).toMatchObject({
      "x-beta": true,
      description: "**Beta**: the contract is stable. Changes it.",
    });
  });

  it("responds with 200 and the envelope, which omits the result if the operation has none", () => {
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

  it("cannot have a parameter without a description", () => {
    expect(() => openApiDocument([{ ...operation, path: "/v1/things/{thingId}" }])).toThrow("thingId");
  });

  it.each([
    ["Unauthenticated", "WWW-Authenticate"],
    ["TooManyRequests", "Retry-After"],
    ["Unavailable", "Retry-After"],
    ["UnsupportedMediaType", "Accept-Patch"],
    ["Refused", "Allow"],
  ])("has the response %s with %s in addition to the common headers", (response, header) => {
    const names = ["X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", header];
    expect(Object.keys(at(`components/responses/${response}/headers`))).toEqual(names);
  });
});

describe("the document", () => {
  test("is OpenAPI 3.1 with the published title, security scheme and tags", () => {
    expect(document).toMatchObject({
      openapi: expect.stringMatching(/^3\.1\.\d$/),
      info: {
        title: "pipe-scaling API",
        version: "1.0",
        contact: { name: expect.any(String) },
        license: { identifier: "Apache-2.0" },
      },
      servers: [{ url: "/" }],
      security: [{ basicAuth: [] }],
      components: { securitySchemes: { basicAuth: { type: "http", scheme: "basic" } } },
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

  test("is valid according to the OpenAPI schema", async () => {
    const validator = new Validator();
    expect(await validator.validate(structuredClone({ ...document }))).toEqual({ valid: true });
    expect(validator.version).toBe("3.1");
    const { info: _, ...spoilt } = document;
    expect(await validator.validate(spoilt)).toMatchObject({ valid: false });
  });

  test("contains the target of every reference", () => {
    const references = [...nodes(document)].flatMap(({ $ref }) => (typeof $ref === "string" ? [$ref] : []));
    expect(references.length).toBeGreaterThan(20);
    for (const reference of references) expect(at(reference.replace("#/", ""))).toBeDefined();
  });

  test("has a schema for each object of the contract", () => {
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

  test.each(schemaNames)("has a schema for %s that compiles and accepts its own examples", (name) => {
    const schema = at(`components/schemas/${name}`);
    for (const node of nodes(schema)) {
      const { examples, ...rest } = node;
      if (!Array.isArray(examples)) continue;
      const conforms = validatorOf(rest);
      for (const example of examples) expect(conforms(example), JSON.stringify(example)).toBe(true);
    }
    expect(() => validatorOf(schema)).not.toThrow();
    expect(schema).toMatchObject({ type: "object" });
  });

  test("describes exactly the request bodies as closed objects, so that clients accept new fields of responses", () => {
    const isClosed = ({ additionalProperties }: Node) => additionalProperties === false;
    const { schemas, ...otherComponents } = z
      .looseObject({ schemas: z.record(z.string(), z.unknown()) })
      .parse(complete["components"]);
    const closed = Object.keys(schemas).filter((name) => [...nodes(schemas[name])].some(isClosed));
    const bodies = [...nodes(complete["paths"])].flatMap(({ requestBody }) =>
      [...nodes(requestBody)].flatMap(({ $ref }) => (typeof $ref === "string" ? [$ref] : [])),
    );
    expect(closed.map((name) => `#/components/schemas/${name}`).sort()).toEqual([...new Set(bodies)].sort());
    expect([...nodes([complete["paths"], otherComponents])].filter(isClosed)).toEqual([]);
  });

  test.each([8, 24, 128])(
    "describes %i cores as the largest size in requests, and none in responses",
    (cores) => {
      const described = openApiDocument([operation], sizeOfCores(cores)).components?.schemas;
      expect(described).toMatchObject({
        PipeScalingPatch: {
          properties: {
            replicaCpuMillicores: { maximum: cores * 1000 },
            replicaMemoryGb: { maximum: cores * 4 },
          },
          // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
          then: { anyOf: { length: cores } },
        },
      });
      const response = JSON.parse(JSON.stringify(described?.["PipeScaling"]));
      expect(validatorOf(response)({ replicaCpuMillicores: 200_000, replicaMemoryGb: 800 })).toBe(true);
    },
  );

  test("describes a date by its format alone", () => {
    const dates = [...nodes(complete)].filter(({ format }) => format === "date-time");
    expect(dates.length).toBeGreaterThan(5);
    for (const date of dates) expect(date).not.toHaveProperty("pattern");
  });

  test("describes a reason as an open string, with the known ones in its description", () => {
    const reasons = [...nodes(complete)].flatMap(({ properties }) => {
      const { reason } = Object(properties);
      return reason === undefined ? [] : [reason];
    });
    expect(reasons).toHaveLength(3);
    for (const reason of reasons) {
      expect(reason).toEqual({ type: "string", description: expect.stringContaining("`Refused`") });
    }
  });

  test.each(OPERATIONS.flatMap(({ id, body }) => (body ? [{ id, ...body }] : [])))(
    "has an example of the body of $id, which the API accepts",
    ({ schema, example }) => {
      expect(schema(MAXIMUM).safeParse(example)).toMatchObject({ success: true });
    },
  );
});

/** Request bodies: the schema name, the schema that validates the body, and values around the limits of its fields. */
const BODIES: readonly {
  readonly name: string;
  readonly accepted: z.ZodType;
  readonly fields: Readonly<Record<string, readonly unknown[]>>;
}[] = [
  {
    name: "PipeScalingPatch",
    accepted: pipeScalingPatch(MAXIMUM),
    fields: {
      replicaCpuMillicores: [...multiples(1000, 26), 1500, 2.5, -1000, "4000", [4000], true, null],
      replicaMemoryGb: [...multiples(4, 26), 6, 16.5, -4, "16", {}, false, null],
    },
  },
  {
    name: "BackupConfigurationPatch",
    accepted: backupConfigurationPatch,
    fields: {
      backupPeriodInHours: [...BACKUP_PERIODS_HOURS, 0, 7, 24.5, 72, "24", [24], null],
      backupRetentionPeriodInHours: [0, 24, 25, 48, 1080, 1104, "24", null],
      backupStartTime: [...hours(), "24:00", "2:30", "002:00", "02:00\n", "", 2, false, null],
    },
  },
];

/** 0, `step`, 2 × `step` … `count` × `step` */
function multiples(step: number, count: number): number[] {
  return Array.from({ length: count + 1 }, (_, index) => index * step);
}

/** The hours of a day in both notations. */
function hours(): string[] {
  return multiples(1, 23).flatMap((hour) => [`${hour}:00`, `${String(hour).padStart(2, "0")}:00`]);
}

/** Yields every combination of the values, with absent fields and with an unknown field. */
function* combinations(fields: Readonly<Record<string, readonly unknown[]>>): Generator<object> {
  const [field, ...others] = Object.entries(fields);
  if (!field) {
    yield {};
    yield { unknown: 1 };
    return;
  }
  const [name, values] = field;
  for (const rest of combinations(Object.fromEntries(others))) {
    yield rest;
    for (const value of values) yield { ...rest, [name]: value };
  }
}

describe.each(BODIES)("the document's schema $name", ({ name, accepted, fields }) => {
  const schema = at(`components/schemas/${name}`);
  const conforms = validatorOf(schema);
  const isAccepted = (body: unknown) => accepted.safeParse(body).success;

  it("allows exactly the bodies that the API accepts", () => {
    const bodies = [...combinations(fields), null, [], "", 4000, true];
    const differences = bodies.filter((body) => conforms(body) !== isAccepted(body));
    expect(differences).toEqual([]);
    expect(bodies.filter(isAccepted).length).toBeGreaterThan(24);
  });

  it("generates only bodies that the API accepts, and its negation only bodies that the API rejects", () => {
    const schemas = new Schemas({});
    const generated = jsonSchema.parse(schema);
    const asSent = (body: unknown): unknown => JSON.parse(JSON.stringify(body));
    const accepted = schemas.valid(generated).map((body) => ({ body: asSent(body), isValid: true }));
    const refused = schemas.invalid(generated).map((body) => ({ body: asSent(body), isValid: false }));
    fc.assert(
      fc.property(fc.oneof(accepted, refused), ({ body, isValid }) => {
        expect({ isAccepted: isAccepted(body), conforms: conforms(body) }).toEqual({
          isAccepted: isValid,
          conforms: isValid,
        });
      }),
      { numRuns: 2000 },
    );
  });
});

/** A validator that shares no code with the schemas that the document is generated from. */
function validatorOf(schema: Node): (value: unknown) => boolean {
  return new Ajv2020({ strict: false, validateFormats: false }).compile(schema);
}

it.each(OPERATIONS.map(({ id, tag }) => [tag, id]))(
  "the document describes the tag %s of %s as part of this server",
  (tag) => {
    expect(document["tags"]).toContainEqual({
      name: tag,
      description: expect.not.stringContaining("Not part"),
    });
  },
);
