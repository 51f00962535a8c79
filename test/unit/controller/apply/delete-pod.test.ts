import { describe, expect, it } from "vitest";
import { apply } from "../../../../src/controller/apply/apply.ts";
import { toPodView } from "../../../../src/controller/observe/pod-view.ts";
import { KubeApiError } from "../../../../src/kube/errors.ts";
import type { Pod } from "../../../../src/kube/objects.ts";
import { anApplier } from "../../../support/fixtures/applier.ts";
import { aStatefulPipe } from "../../../support/fixtures/stateful-set.ts";

function pod(resourceVersion: string): Pod {
  return {
    metadata: { name: "a-2", namespace: "pipes", uid: "uid-a-2", resourceVersion },
    spec: { containers: [] },
  };
}

/** Deletes a pod that the cache has in version 5, and that has version 7. */
async function deleted(respond: () => unknown) {
  const made = anApplier(({ method }) => (method === "DELETE" ? respond() : { items: [pod("7")] }));
  const seen = toPodView(pod("5"));
  made.caches.pods.apply(seen);
  const error = await apply(made.applier, { type: "delete-pod", pipe: aStatefulPipe(), pod: seen });
  const cached = made.caches.pods.get("pipes/a-2")?.metadata.resourceVersion;
  return { ...made, error, cached, record: made.applier.writes.get("uid-a-2", "delete-pod") };
}

const refused = (code: number, message: string) => () => {
  throw new KubeApiError("DELETE", code, JSON.stringify({ message, reason: "Forbidden" }));
};

describe("the deletion of a pod", () => {
  it("applies only to the version that was seen, because the pod may be ready meanwhile", async () => {
    const { requests, record, error } = await deleted(() => pod("6"));
    expect(requests).toMatchObject([
      {
        method: "DELETE",
        path: "/api/v1/namespaces/pipes/pods/a-2",
        body: { preconditions: { uid: "uid-a-2", resourceVersion: "5" } },
      },
    ]);
    expect([error, record?.outcome.type]).toEqual([undefined, "done"]);
  });

  it("reads a pod that has changed, so that the next decision sees it", async () => {
    const { error, record, cached } = await deleted(refused(409, "Precondition failed"));
    expect([error?.isConflict, record?.outcome.type, cached]).toEqual([true, "failed", "7"]);
  });

  it("remembers that the permission is missing", async () => {
    const { record, cached } = await deleted(refused(403, 'pods "a-2" is forbidden: User cannot delete'));
    expect(record?.outcome).toMatchObject({ type: "failed", error: { reason: expect.any(String) } });
    expect(cached).toBe("5");
  });
});
