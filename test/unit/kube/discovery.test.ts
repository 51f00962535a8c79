import { describe, expect, it } from "vitest";
import type { KubeRequest } from "../../../src/kube/client.ts";
import { isServed, mayBeServed } from "../../../src/kube/discovery.ts";
import { KubeApiError } from "../../../src/kube/errors.ts";
import { VERTICAL_AUTOSCALERS } from "../../../src/kube/paths.ts";

/** @param respond to the request of the kinds in a group */
function served(respond: () => object, find = isServed): Promise<boolean> {
  const json = async <T>({ path }: KubeRequest): Promise<T> => {
    expect(path).toBe("/apis/autoscaling.k8s.io/v1");
    return JSON.parse(JSON.stringify(respond()));
  };
  return find({ json }, VERTICAL_AUTOSCALERS);
}

it("a kind is served if its group lists it", async () => {
  expect(await served(() => ({ resources: [{ name: "verticalpodautoscalers" }] }))).toBe(true);
  expect(await served(() => ({ resources: [{ name: "verticalpodautoscalercheckpoints" }] }))).toBe(false);
});

it("a kind of a group that does not exist is not served, and another error says nothing", async () => {
  const failed = (code: number) =>
    served(() => {
      throw new KubeApiError("GET", code, "{}");
    });
  expect(await failed(404)).toBe(false);
  await expect(failed(503)).rejects.toThrow("503");
});

describe("a kind", () => {
  const FORBIDDEN = 'forbidden: User "controller" cannot get path "/apis/autoscaling.k8s.io/v1"';
  const mayBe = (code: number, message: string) =>
    served(() => {
      throw new KubeApiError("GET", code, JSON.stringify({ message }));
    }, mayBeServed);

  it("may be served if the account may not know", async () => {
    expect(await mayBe(403, FORBIDDEN)).toBe(true);
    expect(await mayBe(404, "404 page not found")).toBe(false);
  });

  it.each([
    [
      "the API server does not know its roles yet",
      403,
      `${FORBIDDEN}: RBAC: clusterrole.rbac.authorization.k8s.io "a" not found`,
    ],
    ["a proxy refuses the call", 403, "access denied"],
    ["the API server is starting", 503, "starting"],
  ])("may or may not be served if %s", async (_, code, message) => {
    await expect(mayBe(code, message)).rejects.toThrow(message);
  });
});
