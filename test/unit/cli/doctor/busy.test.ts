import { expect, it } from "vitest";
import { Cluster } from "../../../../src/cli/doctor/cluster.ts";
import type { KubeRequest } from "../../../../src/kube/client.ts";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import { systemClock } from "../../../../src/runtime/clock.ts";

/** A cluster that rejects the first calls with this status code, and the requests that it got. */
function clusterThatRejects(calls: number, code: number) {
  const requests: KubeRequest[] = [];
  const cluster = new Cluster({
    client: {
      server: "https://cluster.example",
      async json<T>(request: KubeRequest): Promise<T> {
        requests.push(request);
        if (requests.length <= calls) throw new KubeApiError("GET", code, "", { retryAfterHeader: "0" });
        return JSON.parse('{"metadata":{},"items":[]}');
      },
    },
    signal: new AbortController().signal,
    clock: systemClock,
    place: { program: "pipe-scaling", namespace: "records" },
  });
  return { cluster, requests };
}

it.each([429, 503])("doctor repeats a call that a busy API server rejects with %d", async (code) => {
  const { cluster, requests } = clusterThatRejects(3, code);
  expect(await cluster.deployments()).toEqual([]);
  expect(requests).toHaveLength(4);
});

it("doctor repeats a call three times at most, and no call that fails for another reason", async () => {
  const busy = clusterThatRejects(10, 429);
  await expect(busy.cluster.json("/version")).rejects.toMatchObject({ code: 429 });
  expect(busy.requests).toHaveLength(4);
  for (const code of [403, 500]) {
    const failing = clusterThatRejects(1, code);
    await expect(failing.cluster.json("/version")).rejects.toMatchObject({ code });
    expect(failing.requests).toHaveLength(1);
  }
});

it("doctor waits longer for a page of a list than for other responses", async () => {
  const { cluster, requests } = clusterThatRejects(0, 429);
  await cluster.json("/version");
  await cluster.statefulSets();
  expect(requests.map(({ timeoutMs }) => timeoutMs)).toEqual([undefined, 30_000]);
});
