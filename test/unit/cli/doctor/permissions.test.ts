import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import { Cluster } from "../../../../src/cli/doctor/cluster.ts";
import { checkPermissions } from "../../../../src/cli/doctor/permissions.ts";
import type { KubeRequest } from "../../../../src/kube/client.ts";
import { MAX_CALL_CONNECTIONS } from "../../../../src/kube/connection.ts";
import { systemClock } from "../../../../src/runtime/clock.ts";

const labels = {
  "app.kubernetes.io/component": "controller",
  "app.kubernetes.io/part-of": "pipe-scaling-operator",
};

/** A controller for these namespaces. */
function deploymentFor(namespaces: readonly string[]) {
  const env = [
    { name: "PIPE_SCALING_NAMESPACE", value: "records" },
    { name: "PIPE_SCALING_PIPE_NAMESPACES", value: namespaces.join(",") },
  ];
  const spec = { containers: [{ name: "controller", env }] };
  return {
    metadata: { name: "controller", namespace: "system", labels },
    spec: { template: { metadata: { labels }, spec } },
  };
}

it("the permissions in 500 namespaces are asked in turn: a call that waits for a connection would time out", async () => {
  let running = 0;
  let most = 0;
  let reviews = 0;
  const deployment = deploymentFor(Array.from({ length: 500 }, (_, at) => `pipes-${at}`));
  const client = {
    server: "https://cluster.example",
    async json<T>({ path }: KubeRequest): Promise<T> {
      const isReview = path.endsWith("/subjectaccessreviews");
      if (isReview) reviews += 1;
      running += 1;
      most = Math.max(most, running);
      await setImmediate();
      running -= 1;
      const response = isReview ? { status: { allowed: true } } : { metadata: {}, items: [deployment] };
      return JSON.parse(JSON.stringify(response));
    },
  };
  const place = { program: "pipe-scaling", namespace: "records" };
  const { signal } = new AbortController();
  const results = await checkPermissions(new Cluster({ client, signal, clock: systemClock, place }));
  expect(results).toMatchObject([{ severity: "ok" }]);
  expect(reviews).toBeGreaterThan(500 * 20);
  expect(most).toBeLessThanOrEqual(MAX_CALL_CONNECTIONS);
});
