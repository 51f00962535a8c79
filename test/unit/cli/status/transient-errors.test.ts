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
