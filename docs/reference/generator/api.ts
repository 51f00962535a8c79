import { openApiDocument } from "../../../src/api/openapi/document.ts";
import { OPERATIONS } from "../../../src/api/resources/operations.ts";
import type { Schema } from "./schema.ts";

interface WithContent {
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>;
}

export interface Answer extends WithContent {
  readonly $ref?: string;
  readonly description?: string;
}

export interface Operation {
  readonly tags: readonly [string];
  readonly summary: string;
  readonly description: string;
  readonly parameters?: readonly {
    readonly name: string;
    readonly description: string;
    readonly schema: Schema;
  }[];
  readonly requestBody?: WithContent;
  readonly responses: Readonly<Record<string, Answer>>;
}

interface ApiDocument {
  readonly info: { readonly description: string };
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, Answer>>;
    readonly headers: Readonly<Record<string, { readonly description: string; readonly required?: boolean }>>;
  };
}

/** The OpenAPI document as a client gets it, typed with the parts that the pages use. */
export function apiDocument(): ApiDocument {
  return JSON.parse(JSON.stringify(openApiDocument(OPERATIONS)));
}

export interface NamedOperation extends Operation {
  /** `GET /v1/organizations` */
  readonly call: string;
}

/** Returns the operations in the order of their tags. */
export function operationsOf({ tags, paths }: ApiDocument): NamedOperation[] {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      call: `${method.toUpperCase()} ${path}`,
    })),
  );
  return tags.flatMap(({ name }) => operations.filter(({ tags: [tag] }) => tag === name));
}
