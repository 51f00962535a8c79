import fc from "fast-check";
import * as z from "zod";

/** The part of JSON Schema that the OpenAPI document uses; anything else is rejected, so that nothing is overlooked. */
export interface JsonSchema {
  readonly $ref?: string | undefined;
  readonly type?: "object" | "array" | "string" | "number" | "integer" | "boolean" | "null" | undefined;
  readonly const?: unknown;
  readonly enum?: readonly unknown[] | undefined;
  readonly anyOf?: readonly JsonSchema[] | undefined;
  /** Contains only conditions (`if` and `then`). */
  readonly allOf?: readonly JsonSchema[] | undefined;
  readonly if?: JsonSchema | undefined;
  readonly then?: JsonSchema | undefined;
  readonly properties?: Readonly<Record<string, JsonSchema>> | undefined;
  readonly required?: readonly string[] | undefined;
  readonly additionalProperties?: false | undefined;
  readonly minProperties?: number | undefined;
  readonly items?: JsonSchema | undefined;
  readonly maxItems?: number | undefined;
  readonly minimum?: number | undefined;
  readonly maximum?: number | undefined;
  readonly multipleOf?: number | undefined;
  readonly pattern?: string | undefined;
  readonly format?: string | undefined;
  readonly minLength?: number | undefined;
}

export const jsonSchema: z.ZodType<JsonSchema> = z.lazy(() =>
  z.strictObject({
    $ref: z.string().optional(),
    type: z.enum(["object", "array", "string", "number", "integer", "boolean", "null"]).optional(),
    const: z.unknown().optional(),
    enum: z.array(z.unknown()).optional(),
    anyOf: z.array(jsonSchema).optional(),
    allOf: z.array(jsonSchema).optional(),
    if: jsonSchema.optional(),
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
    then: jsonSchema.optional(),
    properties: z.record(z.string(), jsonSchema).optional(),
    required: z.array(z.string()).optional(),
    additionalProperties: z.literal(false).optional(),
    minProperties: z.int().optional(),
    items: jsonSchema.optional(),
    maxItems: z.int().optional(),
    minimum: z.number().optional(),
    maximum: z.number().optional(),
    multipleOf: z.number().optional(),
    pattern: z.string().optional(),
    minLength: z.int().optional(),
    // Only the format date-time has an effect: a pattern covers the others.
    format: z.string().optional(),
    // Annotations, which are documentation.
    title: z.string().optional(),
    description: z.string().optional(),
    examples: z.array(z.unknown()).optional(),
  }),
);

const DATE_TIME = "date-time";
const dateTime = z.iso.datetime({ offset: true });

/** RFC 3339 requires seconds, unlike ISO 8601. */
function isDateTime(text: string): boolean {
  return dateTime.safeParse(text).success && /T\d\d:\d\d:\d\d/.test(text);
}

/** Times 1 to 20 days from now: times in requests must be in the near future, which no schema can express. */
function dateTimes(): fc.Arbitrary<string> {
  const [min, max] = [1, 20].map((days) => new Date(Date.now() + days * 86_400_000));
  const offset = fc.constantFrom("Z", "+00:00", "-07:00", "+05:45");
  return fc
    .tuple(fc.date({ ...(min && max ? { min, max } : {}), noInvalidDate: true }), offset)
    .map(([date, zone]) => date.toISOString().replace("Z", zone));
}

/** Schemas by their `$ref`. */
export type References = Readonly<Record<string, JsonSchema>>;

export class Schemas {
  readonly #references: References;

  constructor(references: References) {
    this.#references = references;
  }

  conforms(schema: JsonSchema, value: unknown): boolean {
    const resolved = this.#resolved(schema);
    const { anyOf, enum: values } = resolved;
    if (anyOf) return anyOf.some((each) => this.conforms(each, value));
    if ("const" in resolved) return value === resolved.const;
    if (values && !values.includes(value)) return false;
    return this.#hasType(resolved, value) && this.#meetsConditions(resolved, value);
  }

  #meetsConditions(schema: JsonSchema, value: unknown): boolean {
    return conditionsOf(schema).every(
      ({ condition, consequence }) => !this.conforms(condition, value) || this.conforms(consequence, value),
    );
  }

  /** Checks the type, and the keywords of this type. */
  #hasType(schema: JsonSchema, value: unknown): boolean {
    const { type, items, maxItems, pattern, minLength, minimum, maximum, multipleOf, format } = schema;
    switch (type) {
      case "object":
        return isObject(value) && this.#hasProperties(schema, value);
      case "array":
        return (
          Array.isArray(value) &&
          value.length <= (maxItems ?? Number.POSITIVE_INFINITY) &&
          value.every((each) => items === undefined || this.conforms(items, each))
        );
      case "string":
        return (
          typeof value === "string" &&
          value.length >= (minLength ?? 0) &&
          (pattern === undefined || new RegExp(pattern, "u").test(value)) &&
          (format !== DATE_TIME || isDateTime(value))
        );
      case "number":
      case "integer":
        return (
          typeof value === "number" &&
          Number.isFinite(value) &&
          (type === "number" || Number.isInteger(value)) &&
          value >= (minimum ?? Number.NEGATIVE_INFINITY) &&
          value <= (maximum ?? Number.POSITIVE_INFINITY) &&
          (multipleOf === undefined || value % multipleOf === 0)
        );
      case "boolean":
        return typeof value === "boolean";
      case "null":
        return value === null;
      case undefined:
        return !isObject(value) || this.#hasProperties(schema, value);
    }
  }

  #hasProperties(schema: JsonSchema, value: object): boolean {
    const { properties = {}, required = [], minProperties = 0, additionalProperties } = schema;
    const entries = new Map<string, unknown>(Object.entries(value));
    return (
      required.every((name) => entries.has(name)) &&
      entries.size >= minProperties &&
      [...entries].every(([name, each]) => {
        const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
        return property ? this.conforms(property, each) : additionalProperties !== false;
      })
    );
  }

  /** Values that the schema allows. */
  valid(schema: JsonSchema): fc.Arbitrary<unknown> {
    const { unconditional, conditional } = split(this.#resolved(schema));
    const any = this.#unconditionallyValid(unconditional);
    if (conditional.length === 0) return any;
    // Few values would fulfill both the condition and its consequence by chance.
    const fulfilling = fc.oneof(...conditional.map((each) => this.#unconditionallyValid(each)));
    return fc.oneof(any, fulfilling).filter((value) => this.conforms(schema, value));
  }

  #unconditionallyValid(schema: JsonSchema): fc.Arbitrary<unknown> {
    const { anyOf, enum: values, type, properties = {}, required = [], minProperties = 0 } = schema;
    const { minimum = -1e9, maximum = 1e9, multipleOf = 1, pattern, minLength = 0, format } = schema;
    if (anyOf) return fc.oneof(...anyOf.map((each) => this.valid(each)));
    if ("const" in schema) return fc.constant(schema.const);
    if (values) return fc.constantFrom(...values);
    switch (type) {
      case "object":
        return fc
          .record(
            mapValues(properties, (each) => this.valid(each)),
            { requiredKeys: [...required] },
          )
          .filter((value) => Object.keys(value).length >= minProperties);
      case "string":
        if (format === DATE_TIME) return dateTimes();
        return pattern === undefined
          ? fc.string({ minLength, unit: "grapheme" })
          : fc.stringMatching(new RegExp(pattern));
      case "number":
      case "integer":
        return fc
          .integer({ min: Math.ceil(minimum / multipleOf), max: Math.floor(maximum / multipleOf) })
          .map((steps) => steps * multipleOf);
      case "null":
        return fc.constant(null);
      default:
        throw new Error(`no generator for ${type}: add it here`);
    }
  }

  /** Values that the schema does not allow, most of them close to one that it allows. */
  invalid(schema: JsonSchema): fc.Arbitrary<unknown> {
    return fc
      .oneof(...this.#spoilt(schema), fc.constantFrom(...STRANGERS), fc.jsonValue({ maxDepth: 3 }))
      .filter((value) => !this.conforms(schema, value));
  }

  #spoilt(schema: JsonSchema): fc.Arbitrary<unknown>[] {
    const resolved = this.#resolved(schema);
    const { anyOf, type, properties = {}, minimum = 0, maximum = 0, multipleOf = 1 } = resolved;
    if (anyOf) return anyOf.flatMap((each) => this.#spoilt(each));
    switch (type) {
      case "object": {
        const valid = this.valid(schema).map((value) => new Map(Object.entries(Object(value))));
        const withOther = (name: fc.Arbitrary<string>, value: fc.Arbitrary<unknown>) =>
          fc
            .tuple(valid, name, value)
            .map(([all, key, other]) => ownProperties(new Map(all).set(key, other)));
        const { required = [], ...unconditional } = split(resolved).unconditional;
        const conditions = conditionsOf(resolved).map(({ condition }) => condition.required ?? []);
        return [
          ...(conditions.length === 0 ? [[]] : conditions).map((more) =>
            this.#unconditionallyValid({ ...unconditional, required: [...required, ...more] }),
          ),
          ...Object.entries(properties).map(([name, each]) =>
            withOther(fc.constant(name), this.invalid(each)),
          ),
          withOther(fc.oneof(fc.string(), fc.constantFrom(...DANGEROUS_NAMES)), fc.jsonValue()),
          fc.tuple(valid, fc.constantFrom(...Object.keys(properties))).map(([all, key]) => {
            const others = new Map(all);
            others.delete(key);
            return ownProperties(others);
          }),
          fc.array(this.valid(schema), { maxLength: 2 }),
        ];
      }
      case "number":
      case "integer":
        return [
          fc.constantFrom(minimum - multipleOf, maximum + multipleOf, minimum - 1, maximum + 1, -minimum),
          fc.integer({ min: minimum, max: maximum }),
          fc.double({ min: minimum, max: maximum, noNaN: true }),
          this.valid(schema).map(String),
          this.valid(schema).map((value) => [value]),
        ];
      case "string":
        return [
          fc.string(),
          this.valid(schema).map((text) => `${text} `),
          this.valid(schema).map((text) => `${text}\n`),
        ];
      default:
        return [];
    }
  }

  #resolved(schema: JsonSchema): JsonSchema {
    if (schema.$ref === undefined) return schema;
    const found = this.#references[schema.$ref];
    if (!found) throw new Error(`${schema.$ref} leads nowhere`);
    return this.#resolved(found);
  }
}

const DANGEROUS_NAMES = [
  "__proto__",
  "constructor",
  "toString",
  "",
  "replicaCpuMillicores ",
  "status",
  "spec",
];

const STRANGERS = [
  null,
  true,
  "",
  "null",
  [],
  {},
  0,
  -1,
  1e300,
  Number.MAX_SAFE_INTEGER + 2,
  "\u0000",
  { a: { b: [] } },
];

interface Condition {
  readonly condition: JsonSchema;
  readonly consequence: JsonSchema;
}

/** The condition of a schema, and those in its `allOf`. */
function conditionsOf(schema: JsonSchema): readonly Condition[] {
  return [schema, ...(schema.allOf ?? [])].flatMap(({ if: condition, then: consequence }) =>
    condition && consequence ? [{ condition, consequence }] : [],
  );
}

/** The schema without its conditions, and with each alternative of a condition's consequence merged into it. */
function split(schema: JsonSchema) {
  const { if: _if, then: _then, allOf: _allOf, ...unconditional } = schema;
  const conditional = conditionsOf(schema).flatMap(({ condition, consequence }) =>
    (consequence.anyOf ?? [consequence]).map(
      (alternative): JsonSchema => ({
        ...unconditional,
        ...alternative,
        properties: merged(unconditional.properties, alternative.properties),
        required: [...(unconditional.required ?? []), ...(condition.required ?? [])],
      }),
    ),
  );
  return { unconditional, conditional };
}

/** The keywords of an alternative restrict a property. A property that the alternative only names is unchanged. */
function merged(all: JsonSchema["properties"] = {}, alternative: JsonSchema["properties"] = {}) {
  const restricting = Object.entries(alternative).filter(([, each]) => Object.keys(each).length > 0);
  const narrowed = restricting.map(([name, more]) => {
    const { anyOf = [], ...given } = all[name] ?? {};
    const alike = anyOf.find(({ type }) => type !== undefined && type === more.type);
    return [name, { ...(alike ?? given), ...more }] as const;
  });
  return { ...all, ...Object.fromEntries(narrowed) };
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Sets `__proto__` as an own property too, as JSON.parse does. */
function ownProperties(entries: ReadonlyMap<string, unknown>): object {
  const object = {};
  for (const [key, value] of entries) {
    Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
  }
  return object;
}

function mapValues<A, B>(object: Readonly<Record<string, A>>, f: (value: A) => B): Record<string, B> {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, f(value)]));
}
