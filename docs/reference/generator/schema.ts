import { code } from "./markdown.ts";

/** The part of JSON Schema that the pages use, from the CRD and the OpenAPI document. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly format?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly multipleOf?: number;
  readonly maxItems?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  /** The schema of a string that is itself YAML. */
  readonly contentSchema?: Schema;
  readonly examples?: readonly unknown[];
}

export const FIELD_COLUMNS = ["field", "type", "presence", "description"] as const;

/**
 * Returns a row for each field, including those of nested objects.
 *
 * @param refer returns the text for a reference to another schema, given the last segment of its path
 */
export function fieldRows(schema: Schema, refer: (name: string) => string, prefix = ""): string[][] {
  const { properties = {}, required = [] } = schema;
  return Object.entries(properties).flatMap(([name, field]) => {
    const path = `${prefix}${name}`;
    const presence = required.includes(name) ? "always" : "optional";
    return [
      [code(path), typeOf(field, refer), presence, descriptionOf(field)],
      ...fieldRows(field, refer, `${path}.`),
      ...fieldRows(field.items ?? {}, refer, `${path}[].`),
      ...contentRows(field.contentSchema ?? {}, refer, path),
    ];
  });
}

/** The rows of the keys inside of a value that is YAML. */
function contentRows(schema: Schema, refer: (name: string) => string, path: string): string[][] {
  return [...fieldRows(schema, refer, `${path}.`), ...fieldRows(schema.items ?? {}, refer, `${path}[].`)];
}

function descriptionOf({ description, anyOf = [] }: Schema): string {
  return description ?? anyOf.find((each) => each.description !== undefined)?.description ?? "";
}

function typeOf(schema: Schema, refer: (name: string) => string): string {
  const { $ref, anyOf, items, type = "any", format, contentSchema } = schema;
  if (contentSchema) return `YAML: ${typeOf(contentSchema, refer)}`;
  if ($ref !== undefined) return refer($ref.slice($ref.lastIndexOf("/") + 1));
  if (anyOf) return anyOf.map((each) => typeOf(each, refer)).join(" or ");
  if (schema.const !== undefined) return code(JSON.stringify(schema.const));
  if (schema.enum) return schema.enum.map((value) => code(String(value))).join(", ");
  if (items) return `list of ${typeOf(items, refer)}${most(schema.maxItems)}`;
  if (format === "date-time") return "date and time";
  if (format === "uuid") return "UUID";
  if (type === "string") return `string${lengths(schema)}`;
  return `${type}${bounds(schema)}`;
}

function lengths({ minLength = 0, maxLength, pattern }: Schema): string {
  if (pattern !== undefined) return ` of the form ${code(pattern)}`;
  if (minLength === maxLength) return ` of ${minLength} characters`;
  return minLength > 0 ? ", not empty" : "";
}

function most(items: number | undefined): string {
  return items === undefined ? "" : `, at most ${items}`;
}

function bounds({ minimum, maximum = Number.MAX_SAFE_INTEGER, multipleOf }: Schema): string {
  const steps = multipleOf === undefined ? "" : ` in steps of ${multipleOf}`;
  if (maximum < Number.MAX_SAFE_INTEGER && minimum !== undefined) return `, ${minimum} to ${maximum}${steps}`;
  return minimum === undefined ? steps : `, at least ${minimum}${steps}`;
}
