import { expect, it } from "vitest";
import { writeErrorOf } from "../../../../src/controller/apply/write-error.ts";
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
  expect(writeErrorOf(new KubeApiError("PATCH", 403, JSON.stringify({ message })))?.reason).toBe(reason);
});
