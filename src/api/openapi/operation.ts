import type * as z from "zod";
import type { Size } from "../../domain/size.ts";

/** The methods of all operations; HEAD comes with GET. */
export const METHODS = ["GET", "PUT", "PATCH", "DELETE"] as const;

export type Method = (typeof METHODS)[number];

/** The tags of the published contract. */
export type Tag =
  | "Organization"
  | "User management"
  | "Billing"
  | "Service"
  | "Backup"
  | "OpenAPI"
  | "Prometheus"
  | "Pipes";

/** A request body of type `application/json`. */
export interface RequestBody {
  /** @param maximum the largest size that can be requested */
  readonly schema: (maximum: Size) => z.ZodType;
  /** A body that the schema accepts, for the documentation and for clients that try the operation. */
  readonly example: unknown;
}

/** An operation of the API: the single source of its entry in the OpenAPI document. */
export interface Operation {
  readonly method: Method;
  /** In OpenAPI syntax: `/v1/things/{thingId}`. */
  readonly path: string;
  readonly id: string;
  readonly tag: Tag;
  readonly summary: string;
  /** In CommonMark, like all texts about an operation. */
  readonly description: string;
  readonly isBeta?: true;
  readonly body?: RequestBody;
  /** Schema of the envelope's `result`; without one, the envelope has only `requestId` and `status`. */
  readonly result?: z.ZodType;
  /** An example of metrics as text for Prometheus, which the operation returns instead of the envelope. */
  readonly exposition?: string;
  /** Descriptions of statuses that not every operation returns, or that this one returns for other reasons. */
  readonly refusals: Readonly<Partial<Record<400 | 404 | 409 | 503, string>>>;
}
