import { expect, it } from "vitest";
import type { KubeRequest } from "../../../src/kube/client.ts";
import { isServed } from "../../../src/kube/discovery.ts";
import { KubeApiError } from "../../../src/kube/errors.ts";
import { VERTICAL_AUTOSCALERS } from "../../../src/kube/paths.ts";

/** @param respond to the request of the kinds in a group */
function served(respond: () => object): Promise<boolean> {
  const json = async <T>({ path }: KubeRequest): Promise<T> => {
    expect(path).toBe("/apis/autoscaling.k8s.io/v1");
    return JSON.parse(JSON.stringify(respond()));
  };
  return isServed({ json }, VERTICAL_AUTOSCALERS);
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
