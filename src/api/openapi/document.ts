import * as z from "zod";
import { createDocument, type ZodOpenApiObject, type ZodOpenApiOverride } from "zod-openapi";
import { DEFAULT_MAXIMUM_CORES, type Size, sizeOfCores } from "../../domain/size.ts";
import type { Operation, Tag } from "./operation.ts";
import { responsesOf } from "./responses.ts";

/** Version of the published contract, not of the program. */
const VERSION = "1.0";

const DESCRIPTION = `
Resizes the pipes of a service with one call, and manages the organization around it.

- **Authentication** is HTTP Basic: the user name is the key ID of an API key, and the password is its secret.
- **A 200 is the only success.** Its body is JSON, except for the metrics. Every other response has a body with \`error\`, a sentence for people, and \`status\`. A 4xx has changed nothing. After a 5xx, the outcome of a write is unknown. The write is safe to repeat, unless it ends a boost.
- **Each key has a rate limit**; the headers \`X-RateLimit-*\` of each response show how many requests are left. Responses 429 and 503 carry \`Retry-After\`.
- **Paths** are case-sensitive and have no trailing slash. UUIDs are accepted in any case and returned in lower case. HEAD is GET without a body. No operation takes a query string: reads ignore one, and every other request with one gets 400.
- **Dates** are always in UTC.
- **New fields and new values of \`reason\`** can appear in any release: accept the ones that you do not know. A request must not contain unknown fields.
- **Browsers** can read this document from any origin. No operation allows calls from other origins (CORS), because a key does not belong in a web page.
`.trim();

const TAGS: Readonly<Record<Tag, string>> = {
  Organization: "The organization that a key belongs to.",
  "User management": "The members of an organization.",
  Billing: "Not part of this server.",
  Service: "The services of an organization.",
  Backup: "The schedule and the retention of the backups of a service.",
  OpenAPI: "The API keys of an organization.",
  Prometheus: "Metrics of services, for a Prometheus of the organization.",
  Pipes: "The size of the pipes of a service, which all of its database pipes share.",
};

const BETA = "**Beta**: the contract is stable.";

const PARAMETERS: Readonly<Record<string, z.ZodType>> = {
  organizationId: z.guid().meta({ description: "The ID of the key's organization." }),
  serviceId: z.guid().meta({ description: "The ID of a service of the organization." }),
  userId: z.string().min(1).meta({ description: "The ID of a user, in any format." }),
};

/**
 * The OpenAPI 3.1 document of these operations.
 *
 * @param maximum the largest size that can be requested, by default {@link DEFAULT_MAXIMUM_CORES}
 */
export function openApiDocument(
  operations: readonly Operation[],
  maximum = sizeOfCores(DEFAULT_MAXIMUM_CORES),
): ReturnType<typeof createDocument> {
  const byPath = Map.groupBy(operations, ({ path }) => path);
  const paths = [...byPath].map(([path, alternatives]) => [
    path,
    Object.fromEntries(
      alternatives.map((each) => [each.method.toLowerCase(), operationObject(each, maximum)]),
    ),
  ]);
  const document: ZodOpenApiObject = {
    openapi: "3.1.0",
    info: {
      title: "pipe-scaling API",
      version: VERSION,
      description: DESCRIPTION,
      contact: { name: "The platform team that runs this server" },
      license: { name: "Apache License 2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    security: [{ basicAuth: [] }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths: Object.fromEntries(paths),
    components: {
      securitySchemes: {
        // Not named after the key, because generators would confuse it with the schema ApiKey.
        basicAuth: {
          type: "http",
          scheme: "basic",
          description: "The key ID of an API key, and its secret.",
        },
      },
    },
  };
  return createDocument(document, { override: toGeneratable });
}

/**
 * Adapts the schemas to code generators, whose clients must accept responses of later versions.
 *
 * - A response is an open object; otherwise, clients would reject a field that is added later. Requests stay strict.
 * - The format of a date describes it: generators that map it to a date type cannot apply zod's pattern as well.
 */
function toGeneratable({ jsonSchema, io }: Parameters<ZodOpenApiOverride>[0]): void {
  if (io === "output" && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
  if (jsonSchema.format === "date-time") delete jsonSchema.pattern;
}

function operationObject(operation: Operation, maximum: Size) {
  const { id, tag, summary, description, isBeta = false } = operation;
  return {
    operationId: id,
    tags: [tag],
    summary,
    description: isBeta ? `${BETA} ${description}` : description,
    ...(isBeta ? { "x-beta": true } : {}),
    ...parametersOf(operation.path),
    ...requestBodyOf(operation, maximum),
    responses: responsesOf(operation),
  };
}

function parametersOf(path: string) {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  if (names.length === 0) return {};
  return {
    requestParams: { path: z.object(Object.fromEntries(names.map((name) => [name, parameter(name)]))) },
  };
}

function parameter(name: string): z.ZodType {
  const schema = PARAMETERS[name];
  if (!schema) throw new Error(`the path parameter ${name} has no description`);
  return schema;
}

function requestBodyOf({ body }: Operation, maximum: Size) {
  if (!body) return {};
  const { schema, example } = body;
  // The server accepts another media type too, but some generators would declare the body once for each.
  return {
    requestBody: { required: true, content: { "application/json": { schema: schema(maximum), example } } },
  };
}
