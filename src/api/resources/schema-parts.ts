import * as z from "zod";

/*
 * Objects on the wire (api-contract, part 1), one kind of them in each file `…-schema.ts`. What validates also gives
 * the types, and with its `meta` the OpenAPI document. Each message follows the name of its field:
 * `replicaMemoryGb must be …`.
 */

/** A UUID of any version. */
export const id = z.guid();

/** Always in UTC. That it is one of the calendar's is said by the format; the pattern of it is for nobody to read. */
export const instant = z.iso.datetime().meta({ override: { pattern: "Z$" } });

export const ID_EXAMPLE = "6f1c2a54-9d0b-4c53-8a42-0f8f6b1d2c11";
export const CREATED_EXAMPLE = "2026-01-31T12:00:00.000Z";
