import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import { Cluster } from "../../../../src/cli/doctor/cluster.ts";
import { checkPermissions, mayInPipes } from "../../../../src/cli/doctor/permissions.ts";
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

/** A cluster with a controller. @param isAllowed by the group and the namespace of the resource */
function clusterWith(isAllowed: (group: string, namespace: string) => boolean, namespaces = 500) {
  const calls = { running: 0, most: 0, reviews: 0 };
  const deployment = deploymentFor(Array.from({ length: namespaces }, (_, at) => `pipes-${at}`));
  const client = {
    server: "https://cluster.example",
    async json<T>({ path, body }: KubeRequest): Promise<T> {
      const isReview = path.endsWith("/subjectaccessreviews");
      if (isReview) calls.reviews += 1;
      calls.running += 1;
      calls.most = Math.max(calls.most, calls.running);
      await setImmediate();
      calls.running -= 1;
      const attributes = Object(body).spec?.resourceAttributes ?? {};
      const allowed = isReview && isAllowed(attributes.group, attributes.namespace);
      const response = isReview ? { status: { allowed } } : { metadata: {}, items: [deployment] };
      return JSON.parse(JSON.stringify(response));
    },
  };
  const place = { program: "pipe-scaling", namespace: "records" };
  const { signal } = new AbortController();
  return { calls, cluster: new Cluster({ client, signal, clock: systemClock, place }) };
}

it("the permissions in 500 namespaces are asked in turn: a call that waits for a connection would time out", async () => {
  const { calls, cluster } = clusterWith(() => true);
  expect(await checkPermissions(cluster)).toMatchObject([{ severity: "ok" }]);
  expect(calls.reviews).toBeGreaterThan(500 * 20);
  expect(calls.most).toBeLessThanOrEqual(MAX_CALL_CONNECTIONS);
});

it("a permission that is missing in 500 namespaces is one result", async () => {
  const { cluster } = clusterWith((group) => group !== "autoscaling");
  expect(await checkPermissions(cluster)).toMatchObject([
    {
      severity: "error",
      message:
        "The account of the controller, system:serviceaccount:system:default, may not list, watch horizontalpodautoscalers (autoscaling) in pipes-0, pipes-1, pipes-2 and 497 other namespaces.",
    },
  ]);
});

it.each([
  [
    "that every process needs",
    "autoscaling",
    "error",
    /: `helm upgrade --force-conflicts` .*rbac\.create=true/,
  ],
  ["that values grant", "apps", "note", /rbac\.statefulSets=true, then: `helm upgrade --force-conflicts` /],
])(
  "the remedy for a permission %s restores a Role that somebody has edited",
  async (_, group, severity, remedy) => {
    const { cluster } = clusterWith((each) => each !== group, 1);
    const results = await checkPermissions(cluster);
    expect(results).toContainEqual(
      expect.objectContaining({ severity, remedy: expect.stringMatching(remedy) }),
    );
  },
);

it("a permission counts even if only one of 500 namespaces has it", async () => {
  const permission = ["patch", "apps", "statefulsets"] as const;
  const inOne = clusterWith((_, namespace) => namespace === "pipes-499").cluster;
  const inNone = clusterWith(() => false).cluster;
  const [ours] = await inOne.ownInstallations();
  if (!ours) throw new Error("There is no installation.");
  expect(await mayInPipes(inOne, ours, permission)).toBe(true);
  expect(await mayInPipes(inNone, ours, permission)).toBe(false);
});
