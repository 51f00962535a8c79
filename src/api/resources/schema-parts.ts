import * as z from "zod";

/*
 * Parts of the schemas in the files `schema.ts`. One schema validates a body, defines its type and, with its `meta`,
 * its entry in the OpenAPI document. Each error message follows the name of its field: `replicaMemoryGb must be …`.
 */

/** A UUID of any version. */
export const id = z.guid();

/** Always in UTC. In the OpenAPI document the format describes the rest; zod's own pattern is unreadable. */
export const instant = z.iso.datetime().meta({ override: { pattern: "Z$" } });

export const ID_EXAMPLE = "6f1c2a54-9d0b-4c53-8a42-0f8f6b1d2c11";
export const CREATED_EXAMPLE = "2026-01-31T12:00:00.000Z";
