import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CONTROLLER_FIELD_MANAGER } from "../../src/crd/names.ts";
import type { KubeRequest } from "../../src/kube/client.ts";
import type { KubeObject } from "../../src/kube/objects.ts";
import { collectionPath, PODS, type Resource, STATEFUL_SETS } from "../../src/kube/paths.ts";
import { dryRunOf } from "./denials.ts";
import { isReady, PIPE_LABELS, pipeStatefulSet, StatefulPipes } from "./stateful-pipes.ts";

/*
 * The policies restrict patches and deletions. A thief may try other ways to the same objects, which the policies do not
 * see: other verbs and subresources. The API server allows none of them.
 */

const REVISIONS: Resource = { apiVersion: "apps/v1", plural: "controllerrevisions" };
const CLAIMS: Resource = { apiVersion: "v1", plural: "persistentvolumeclaims" };

let pipes: StatefulPipes;
beforeAll(async () => {
  pipes = await StatefulPipes.start(await sharedCluster());
  await pipes.create("pipe", { replicas: 1 });
  await pipes.pod("pipe-0", isReady);
});
afterAll(() => pipes?.end());

type Attempt = () => KubeRequest | Promise<KubeRequest>;

const ofSet = (subresource = "") => pipes.path("pipe") + subresource;
const ofPod = (subresource = "") => `${pipes.path("pipe-0", PODS)}${subresource}`;
const all = (resource: Resource) => collectionPath(resource, pipes.release.pipes);
const patch = (path: string, body: object): KubeRequest => pipes.request(path, body);
const post = (path: string, body: object): KubeRequest => ({ method: "POST", path, body });

/** Replaces an object with itself. */
async function replace(path: string): Promise<KubeRequest> {
  return { method: "PUT", path, body: await pipes.admin.json<KubeObject>({ path }) };
}

function applied(path: string, body: object): KubeRequest {
  const query = { fieldManager: CONTROLLER_FIELD_MANAGER, force: true };
  return { method: "PATCH", path, query, patchType: "application/apply-patch+yaml", body };
}

const POD = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "new", labels: PIPE_LABELS },
  spec: { containers: [{ name: "pipe", image: "evil" }] },
};

const ATTEMPTS: readonly [what: string, Attempt][] = [
  ["scale a StatefulSet", () => patch(ofSet("/scale"), { spec: { replicas: 0 } })],
  ["change the status of a StatefulSet", () => patch(ofSet("/status"), { status: { replicas: 9 } })],
  ["replace a StatefulSet", () => replace(ofSet())],
  ["delete a StatefulSet", () => ({ method: "DELETE", path: ofSet() })],
  ["delete all StatefulSets", () => ({ method: "DELETE", path: all(STATEFUL_SETS) })],
  ["create a StatefulSet", () => post(all(STATEFUL_SETS), pipeStatefulSet("new", pipes.release.pipes))],
  [
    "create a StatefulSet by server-side apply",
    () => applied(pipes.path("new"), pipeStatefulSet("new", pipes.release.pipes)),
  ],
  ["replace a pod", () => replace(ofPod())],
  ["create a pod", () => post(all(PODS), POD)],
  ["create a pod by server-side apply", () => applied(pipes.path("new", PODS), POD)],
  ["delete all pods", () => ({ method: "DELETE", path: all(PODS) })],
  [
    "evict a pod",
    () =>
      post(ofPod("/eviction"), { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: "pipe-0" } }),
  ],
  [
    "add an ephemeral container",
    () =>
      patch(ofPod("/ephemeralcontainers"), {
        spec: { ephemeralContainers: [{ name: "evil", image: "evil" }] },
      }),
  ],
  [
    "bind a pod to a node",
    () =>
      post(ofPod("/binding"), {
        apiVersion: "v1",
        kind: "Binding",
        metadata: { name: "pipe-0" },
        target: { apiVersion: "v1", kind: "Node", name: "node-0" },
      }),
  ],
  ["change the status of a pod", () => patch(ofPod("/status"), { status: { phase: "Failed" } })],
  ["run a command in a pod", () => ({ method: "POST", path: ofPod("/exec") })],
  ["read the log of a pod", () => ({ method: "GET", path: ofPod("/log") })],
  ["read the revisions of a StatefulSet", () => ({ method: "GET", path: all(REVISIONS) })],
  ["delete the revisions of a StatefulSet", () => ({ method: "DELETE", path: all(REVISIONS) })],
  [
    "change a volume claim",
    () => patch(pipes.path("data-pipe-0", CLAIMS), { metadata: { labels: { a: "b" } } }),
  ],
  ["delete the volume claims of a StatefulSet", () => ({ method: "DELETE", path: all(CLAIMS) })],
];

describe("with the token of the controller, a thief", () => {
  it.each(ATTEMPTS)("may not %s", async (_, attempt) => {
    expect(await dryRunOf(pipes.controller, await attempt())).toMatch(/^403 .*cannot [a-z]+ resource/s);
  });
});
