import { expect, it } from "vitest";
import { writeErrorOf } from "../../../../src/controller/apply/write-error.ts";
import { KubeApiError } from "../../../../src/kube/errors.ts";

const NO_RIGHT = 'pods "a" is forbidden: User "controller" cannot patch resource "pods/resize"';

it.each([
  ["a lack of permissions", NO_RIGHT, "Forbidden"],
  [
    "a server that does not know the roles yet",
    `${NO_RIGHT}: RBAC: [clusterrole.rbac.authorization.k8s.io "b" not found]`,
    "WriteFailed",
  ],
  ["a rejection by a policy", 'pods "a" is forbidden: denied the request', "Refused"],
])("distinguishes %s", (_what, message, reason) => {
  expect(writeErrorOf(new KubeApiError("PATCH", 403, JSON.stringify({ message })))?.reason).toBe(reason);
});
