import { describe, expect, it } from "vitest";
import {
  isAboveNode,
  isForbiddenByRbac,
  isMissingSubresource,
  isOutcomeUnknown,
  isRefusedSize,
  isWithoutRoles,
  KubeApiError,
  KubeConfigError,
  KubeUnreachableError,
  messageOf,
} from "../../../src/kube/errors.ts";
import { noAddress } from "../../support/fixtures/no-address.ts";

const FORBIDDEN = 'pods "a" is forbidden: User "controller" cannot patch resource "pods/resize"';

it.each<[string, number, string, boolean]>([
  ["a quota", 403, 'pods "a" is forbidden: exceeded quota: q, requested: cpu=3', true],
  [
    "a LimitRange",
    403,
    'pods "a" is forbidden: maximum memory usage per Container is 8Gi, but limit is 16Gi',
    true,
  ],
  ["a request above the limit", 422, "Pod is invalid: must be less than or equal to cpu limit of 2", true],
  ["a policy", 422, 'ValidatingAdmissionPolicy "p" denied request: no', false],
  ["a webhook that names a quota", 403, 'admission webhook "w" denied the request: exceeded quota', false],
  ["RBAC", 403, FORBIDDEN, false],
])("a refusal by %s holds for new pods, too, only if it is about the size", (_what, code, message, is) => {
  expect(isRefusedSize(new KubeApiError("PATCH", code, JSON.stringify({ message })))).toBe(is);
});

const WITHOUT_ROLES = 'RBAC: clusterrole.rbac.authorization.k8s.io "system:discovery" not found';

it.each<[string, string, boolean, boolean]>([
  ["an object", FORBIDDEN, true, false],
  ["a kind", 'pods is forbidden: User "a" cannot list resource "pods" in API group ""', true, false],
  ["a path", 'forbidden: User "a" cannot get path "/version"', true, false],
  [
    "a path, by an API server that knows no roles yet",
    `forbidden: User "a" cannot get path "/apis": ${WITHOUT_ROLES}`,
    true,
    true,
  ],
  ["a path, to a user without a name", 'forbidden: User "" cannot get path "/version"', true, false],
  ["a size, by a quota", 'pods "a" is forbidden: exceeded quota: q', false, false],
  ["a pod, by Pod Security", 'pods "a" is forbidden: violates PodSecurity "restricted:latest"', false, false],
  [
    "a role, because it grants more",
    'roles "a" is forbidden: user "a" is attempting to grant permissions',
    false,
    false,
  ],
])(
  "a 403 is recognized as one of RBAC or of others if it refuses %s",
  (_what, message, isOfRbac, hasNoRoles) => {
    const error = new KubeApiError("GET /version", 403, JSON.stringify({ message }));
    expect([isForbiddenByRbac(error), isWithoutRoles(error)]).toEqual([isOfRbac, hasNoRoles]);
  },
);

it.each<[string, Error, boolean]>([
  ["5xx", new KubeApiError("PATCH", 504, "{}"), true],
  ["429", new KubeApiError("PATCH", 429, "{}"), false],
  ["a lost response", systemError("read", "ECONNRESET"), true],
  ["a deadline", new DOMException("The operation was aborted due to timeout", "TimeoutError"), true],
  ["a rejected connection", systemError("connect", "ECONNREFUSED"), false],
  [
    "a rejected connection to a proxy",
    new Error("proxy", { cause: systemError("connect", "ETIMEDOUT") }),
    false,
  ],
  ["a name without an address", systemError("getaddrinfo", "ENOTFOUND"), false],
  ["rejected connections to all addresses of a name", noAddress(), false],
  ["unusable credentials", new KubeConfigError("no token"), false],
])("after %s, the outcome of a write can be unknown", (_what, cause, is) => {
  const error =
    cause instanceof KubeApiError ? cause : new KubeUnreachableError("PATCH: no response", { cause });
  expect(isOutcomeUnknown(error)).toBe(is);
});

function systemError(syscall: string, code: string): Error {
  return Object.assign(new Error(code), { syscall, code });
}

it.each([
  ["7", 7000],
  ["86400", 60_000],
  ["1e300", 60_000],
  ["-1", undefined],
  ["Infinity", undefined],
  ["soon", undefined],
])("a Retry-After of %j is a delay of %j ms", (retryAfterHeader, ms) => {
  expect(new KubeApiError("GET", 429, "{}", { retryAfterHeader }).retryAfterMs).toBe(ms);
});

it("a Retry-After of a webhook is at most a minute, too", () => {
  const body = JSON.stringify({ details: { retryAfterSeconds: 2 ** 31 } });
  expect(new KubeApiError("PATCH", 500, body).retryAfterMs).toBe(60_000);
});

it("a node that is too small is recognized by the cause, whatever the message, and new pods may get another node", () => {
  const details = { causes: [{ reason: "NodeCapacity", message: "" }] };
  const error = new KubeApiError("PATCH", 403, JSON.stringify({ message: "no", details }));
  expect([isAboveNode(error), isRefusedSize(error)]).toEqual([true, false]);
});

it.each([
  ["a path that the API server does not have", 404, "the server could not find the requested resource", true],
  ["a method that it does not have", 405, "the server does not allow this method", true],
  ["a pod that is gone", 404, 'pods "a" not found', false],
  ["a denial of a webhook", 404, 'admission webhook "w" denied the request: no', false],
])("a subresource is missing by the response about %s: %i", (_what, code, message, is) => {
  expect(isMissingSubresource(new KubeApiError("PATCH", code, JSON.stringify({ message })))).toBe(is);
});

describe("the message of an error for people", () => {
  const NONE = "";
  const first = "connect ECONNREFUSED ::1:1";
  it.each<[string, unknown, string]>([
    ["is its own", new Error("no", { cause: noAddress() }), "no"],
    ["is that of the first address if it is about several addresses", noAddress(), first],
    ["is that of its cause if it has none", new Error(NONE, { cause: noAddress() }), first],
    ["is its own even if it consists of several errors", new AggregateError([noAddress()], "both"), "both"],
    ["is its name if there is nothing else", new TypeError(NONE), "TypeError"],
    ["is its name if it consists of no errors", new AggregateError([], NONE), "AggregateError"],
    ["is the text of a value that is no error", "a text", "a text"],
  ])("%s", (_, error, message) => {
    expect(messageOf(error)).toBe(message);
  });
});
