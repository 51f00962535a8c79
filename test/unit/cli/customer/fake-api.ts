import {
  done,
  type FakeHttpServer,
  type FakeResponse,
  type ReceivedRequest,
  refused,
  startFakeHttpServer,
} from "../../../support/fakes/fake-http-server.ts";

export const ORGANIZATION = "6f1c2a54-9d0b-4c53-8a42-0f8f6b1d2c11";
export const SERVICE = "01234567-89ab-4cde-8f01-23456789abcd";
export const BASE = `/v1/organizations/${ORGANIZATION}`;
export const SCALING = `${BASE}/services/${SERVICE}/pipesCdcScaling`;
/** The organization of the key, as the API returns it. */
export const OWN = { id: ORGANIZATION, name: "Acme", createdAt: "2026-01-31T12:00:00.000Z", byocConfig: [] };

export type Operations = Readonly<
  Record<string, FakeResponse | ((request: ReceivedRequest) => FakeResponse)>
>;

/** An API with the organization and these operations, with keys such as `GET /v1/x`. */
export function apiWith(operations: Operations = {}): Promise<FakeHttpServer> {
  return startFakeHttpServer((request) => {
    const { method, path } = request;
    const response = operations[`${method} ${path}`];
    if (response !== undefined) return typeof response === "function" ? response(request) : response;
    if (path === "/v1/organizations") return done([OWN]);
    return refused(404, "This API has no such path.");
  });
}

/** The environment variables of a command that calls this API. */
export function accessTo({ url }: FakeHttpServer): Readonly<Record<string, string>> {
  return { PIPE_SCALING_API_URL: url, PIPE_SCALING_KEY_ID: "key1", PIPE_SCALING_KEY_SECRET: "tops3cret" };
}

export function writesTo({ requests }: FakeHttpServer): ReceivedRequest[] {
  return requests.filter(({ method }) => method !== "GET");
}
