import { expect, it } from "vitest";
import { fallbackOf, writeErrorOf } from "../../../../src/controller/apply/write-error.ts";
import { KubeApiError } from "../../../../src/kube/errors.ts";

const FORBIDDEN = 'pods "a" is forbidden: User "controller" cannot patch resource "pods/resize"';

it.each([
  ["recognizes missing permissions", FORBIDDEN, "Forbidden"],
  [
    "recognizes an API server that has not loaded the roles yet",
    `${FORBIDDEN}: RBAC: [clusterrole.rbac.authorization.k8s.io "b" not found]`,
    "WriteFailed",
  ],
  ["recognizes a denial by a policy", 'pods "a" is forbidden: denied the request', "Refused"],
])("%s in a 403", (_what, message, reason) => {
  expect(reasonOf(403, message)).toBe(reason);
});

it("a 403 that names a role that was deleted is a missing permission, and so a reason for a rollout", () => {
  const message = `${FORBIDDEN}: RBAC: clusterrole.rbac.authorization.k8s.io "b" not found`;
  const error = new KubeApiError("PATCH", 403, JSON.stringify({ message }), { areDeleted: () => true });
  expect(fallbackOf(error)?.fallback).toBe("Forbidden");
});

const DENIED = 'admission webhook "pipes.example.com" denied the request: not today';

it.each([
  [400, "Refused"],
  [404, "Refused"],
  [409, "Refused"],
  [413, "Refused"],
  [429, "WriteFailed"],
  [500, "WriteFailed"],
])("a denial of a webhook with %i is %s, because the webhook chooses the code", (code, reason) => {
  expect(reasonOf(code, DENIED)).toBe(reason);
});

const POLICY = "ValidatingAdmissionPolicy 'sizes' with binding 'sizes' denied request: too large";

it.each([401, 403, 413, 422])(
  "a denial of a policy with %i is Refused, because the policy chooses the code",
  (code) => {
    expect(reasonOf(code, POLICY)).toBe("Refused");
  },
);

it("a 401 of the API server is a failed write, because the credentials may be renewed", () => {
  expect(reasonOf(401, "Unauthorized")).toBe("WriteFailed");
});

it.each([
  [404, 'deployments.apps "a" not found'],
  [409, "the object has been modified"],
])("a %i of the API server is no error of the write, because our view is outdated", (code, message) => {
  expect(reasonOf(code, message)).toBeUndefined();
});

function reasonOf(code: number, message: string): string | undefined {
  return writeErrorOf(new KubeApiError("PATCH", code, JSON.stringify({ message })))?.reason;
}
