export type Method = "GET" | "PATCH" | "DELETE";

export interface ApiRequest {
  readonly method: Method;
  /** Beginning with /v1. */
  readonly path: string;
  readonly body?: object;
}
