import { expect, test } from "vitest";
import { TransientErrors } from "../../../../src/cli/status/status.ts";
import { KubeApiError, KubeUnreachableError } from "../../../../src/kube/errors.ts";

const refused = (code: number, body: object = {}) =>
  new KubeApiError("GET /pipescalings", code, JSON.stringify(body));

test("a watch continues after the first 401 in a row, because the client renews its credentials", () => {
  const errors = new TransientErrors();
  expect(errors.retryAfterMs(refused(401))).toBe(0);
  expect(errors.retryAfterMs(refused(401))).toBeUndefined();
});

test("a watch continues after another 401 if a read has succeeded between them", () => {
  const errors = new TransientErrors();
  errors.retryAfterMs(refused(401));
  errors.recordSuccess();
  expect(errors.retryAfterMs(refused(401))).toBe(0);
});

test("a watch continues while the API server is unavailable, and ends without the permission", () => {
  const errors = new TransientErrors();
  expect(errors.retryAfterMs(new KubeUnreachableError("no response"))).toBe(0);
  expect(errors.retryAfterMs(refused(503, { details: { retryAfterSeconds: 2 } }))).toBe(2000);
  expect(errors.retryAfterMs(refused(403))).toBeUndefined();
});

test("a watch continues after a 403 of an API server that has just started, but not after another 403", () => {
  const message =
    'pipescalings.pipes.clouddb.dev is forbidden: User "u" cannot list resource "pipescalings" in API group';
  const forbidden = (text: string, isSoonAfterOutage: boolean) =>
    new KubeApiError("GET /pipescalings", 403, JSON.stringify({ message: text }), { isSoonAfterOutage });
  const errors = new TransientErrors();
  expect(errors.retryAfterMs(forbidden(message, true))).toBe(0);
  expect(errors.retryAfterMs(forbidden(message, false))).toBeUndefined();
  expect(errors.retryAfterMs(forbidden("denied by a policy", true))).toBeUndefined();
  // A binding to a role that was deleted adds this to each 403 of the account.
  const missing = `${message}: RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found`;
  expect(errors.retryAfterMs(forbidden(missing, false))).toBeUndefined();
});
