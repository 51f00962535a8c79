import type * as z from "zod";

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
  /** Schema of the request body. */
  readonly body?: z.ZodType;
  /** Schema of the envelope's `result`; without one, the envelope has only `requestId` and `status`. */
  readonly result?: z.ZodType;
  /** When the operation returns statuses that not every operation can return, or returns them for other reasons. */
  readonly refusals: Readonly<Partial<Record<400 | 404 | 409 | 503, string>>>;
}
