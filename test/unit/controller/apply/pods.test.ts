import { describe, expect, it } from "vitest";
import { apply } from "../../../../src/controller/apply/apply.ts";
import { runsOf } from "../../../../src/controller/in-place/resize-pods.ts";
import { DATABASE_TYPE, TYPE_LABEL } from "../../../../src/controller/names.ts";
import type { Caches } from "../../../../src/controller/observe/caches.ts";
import { type PodView, toPodView } from "../../../../src/controller/observe/pod-view.ts";
import { formatAllotment, resourcesFor } from "../../../../src/controller/observe/resources.ts";
import type { WriteError } from "../../../../src/controller/observe/write-record.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import { KubeApiError, KubeUnreachableError } from "../../../../src/kube/errors.ts";
import type { Pod } from "../../../../src/kube/pods.ts";
import { EtcdRollbackError } from "../../../../src/runtime/restart-required.ts";
import { anApplier } from "../../../support/fixtures/applier.ts";
import { aPipe } from "../../../support/fixtures/snapshot.ts";
import { aStatefulPipe } from "../../../support/fixtures/stateful-set.ts";

const TARGET = resourcesFor(sizeOfCores(4), false);
const error = (code: number, message: string, reason = "") =>
  new KubeApiError("PATCH", code, JSON.stringify({ message, reason }));

const tooLarge = new KubeApiError(
  "PATCH",
  403,
  JSON.stringify({ message: "forbidden", details: { causes: [{ reason: "NodeCapacity", message: "" }] } }),
);

const LABELS = { [TYPE_LABEL]: DATABASE_TYPE };

function pod(resourceVersion: string, resources: object = {}): Pod {
  return {
    metadata: {
      name: "a-1",
      namespace: "pipes",
      uid: "uid-a-1",
      resourceVersion,
      generation: 2,
      labels: LABELS,
    },
    spec: { containers: [{ name: "pipe", resources }] },
  };
}

const AMOUNTS = { requests: { cpu: "4", memory: "16Gi" }, limits: { memory: "16Gi" } };

/** Resizes a pod that the cache has in version 5. @param read its version in a read after that */
async function resized(write: () => unknown = () => pod("6", AMOUNTS), read: string | undefined = "7") {
  const made = anApplier(({ method }) =>
    method ? write() : { items: read === undefined ? [] : [pod(read)] },
  );
  const seen = toPodView(pod("5"));
  made.caches.pods.apply(seen);
  const action = { pipe: aPipe("a"), pod: seen, container: "pipe", resources: TARGET };
  const result = await apply(made.applier, { type: "resize-pod", ...action }).catch((each: unknown) => each);
  const cached = made.caches.pods.get("pipes/a-1")?.metadata.resourceVersion;
  return { ...made, result, cached, record: made.applier.writes.get("uid-a-1", "resize-pod") };
}

const failing = (each: Error, read?: string) =>
  resized(() => {
    throw each;
  }, read);

describe("a pod that lost the label with which the controller watches pods", () => {
  it.each([
    ["the response to a write", () => unlabelled("6", AMOUNTS), undefined],
    ["a read after a conflict", () => conflict(), "7"],
  ])("leaves the cache with %s, because no event may remove that version", async (_, write, read) => {
    const made = anApplier(({ method }) => (method ? write() : { items: read ? [unlabelled(read)] : [] }));
    const seen = toPodView(pod("5"));
    made.caches.pods.apply(seen);
    const action = { pipe: aPipe("a"), pod: seen, container: "pipe", resources: TARGET };
    await apply(made.applier, { type: "resize-pod", ...action });
    expect(made.caches.pods.get("pipes/a-1")).toBeUndefined();
  });
});

function unlabelled(resourceVersion: string, resources: object = {}): Pod {
  const { metadata, spec } = pod(resourceVersion, resources);
  return { metadata: { ...metadata, labels: {} }, spec };
}

function conflict(): never {
  throw error(409, "the object has been modified", "Conflict");
}

describe("the resize of a pod", () => {
  it("is a patch of its subresource for the version that was seen, and the response goes into the cache", async () => {
    const { requests, record, cached } = await resized();
    expect(requests).toMatchObject([
      {
        method: "PATCH",
        path: "/api/v1/namespaces/pipes/pods/a-1/resize",
        body: {
          metadata: { uid: "uid-a-1", resourceVersion: "5" },
          spec: { containers: [{ name: "pipe", resources: TARGET }] },
        },
      },
    ]);
    expect(record).toMatchObject({ subject: formatAllotment(TARGET), outcome: { type: "done" } });
    expect(record?.runs).toBe(runsOf(toPodView(pod("5"))));
    expect(cached).toBe("6");
  });

  it("neither sets nor expects an amount that the template does not have", async () => {
    const { applier, requests } = anApplier(() => pod("6", AMOUNTS));
    const resources = { requests: { cpu: "4" }, limits: {} };
    const action = { pipe: aPipe("a"), pod: toPodView(pod("5")), container: "pipe", resources };
    await apply(applier, { type: "return-pod", ...action });
    expect(requests).toMatchObject([{ body: { spec: { containers: [{ name: "pipe", resources }] } } }]);
    expect(applier.writes.get("uid-a-1", "return-pod")?.outcome.type).toBe("done");
  });

  it("starts the count of a return over only if that succeeded, and a return that of a resize", async () => {
    for (const [purpose, opposite] of [
      ["resize-pod", "return-pod"],
      ["return-pod", "resize-pod"],
    ] as const) {
      const { applier } = anApplier(() => pod("6", AMOUNTS));
      const { writes } = applier;
      const action = { pipe: aPipe("a"), pod: toPodView(pod("5")), container: "pipe", resources: TARGET };
      writes.failed(writes.begin("uid-a-1", opposite, "size"), { reason: "Refused", message: "quota" }, 2);
      await apply(applier, { type: purpose, ...action });
      expect(writes.get("uid-a-1", opposite)).toMatchObject({ attempts: 1, outcome: { type: "failed" } });
      writes.done(writes.begin("uid-a-1", opposite, "size"));
      await apply(applier, { type: purpose, ...action });
      expect(writes.get("uid-a-1", opposite)).toBeUndefined();
    }
  });

  it("is a reason for a rollout if the API server stores other resources, as after a webhook", async () => {
    const { record, cached } = await resized(() => pod("6", { requests: { cpu: "1" } }));
    expect(record?.outcome).toMatchObject({
      type: "failed",
      error: { reason: "Refused", fallback: "Reverted" },
    });
    expect(cached).toBe("6");
  });

  it("is followed by a read after a conflict", async () => {
    const { record, cached, result } = await failing(error(409, "the object has been modified"));
    expect(record?.outcome).toMatchObject({ type: "failed", error: { isConflict: true } });
    expect(cached).toBe("7");
    expect(result).toMatchObject({ isConflict: true });
  });

  it("ends the process if the pod is older than it was, because etcd was restored", async () => {
    const { result, state } = await failing(error(409, "the object has been modified"), "4");
    expect(result).toBeInstanceOf(EtcdRollbackError);
    expect(state.isRolledBack).toBe(true);
  });

  it("is a conflict if the pod is gone", async () => {
    const { record, result } = await failing(error(404, 'pods "a-1" not found'), undefined);
    expect(record?.outcome).toMatchObject({ error: { isConflict: true } });
    expect(result).toMatchObject({ isConflict: true });
  });

  it.each<[string, Error, Partial<WriteError>]>([
    ["a quota", error(403, 'pods "a-1" is forbidden: exceeded quota: q'), { reason: "Refused" }],
    ["a webhook that is down", error(500, "failed calling webhook"), { reason: "WriteFailed" }],
    ["no response", new KubeUnreachableError("timeout"), { reason: "WriteFailed" }],
  ])("is no reason for a rollout after %s", async (_, each, expected) => {
    const { record } = await failing(each);
    expect(record?.outcome).toMatchObject({ type: "failed", error: expected });
    expect(record?.outcome.type === "failed" && record.outcome.error.fallback).toBeUndefined();
  });

  it.each<[string, Error, WriteError["fallback"]]>([
    ["a policy", error(422, 'ValidatingAdmissionPolicy "p" denied request: no'), "Refused"],
    ["a webhook", error(404, 'admission webhook "w" denied the request: no'), "Refused"],
    [
      "RBAC",
      error(403, 'pods "a-1" is forbidden: User "a" cannot patch resource "pods/resize"'),
      "Forbidden",
    ],
    [
      "an API server without the subresource",
      error(404, "the server could not find the requested resource"),
      "NotSupported",
    ],
    ["an API server that does not allow the method", error(405, "not allowed"), "NotSupported"],
    ["the node, which is too small", tooLarge, "Infeasible"],
  ])("leads to a rollout after a refusal by %s", async (_, each, fallback) => {
    const { record, result, requests } = await failing(each);
    expect(record?.outcome).toMatchObject({ type: "failed", error: { fallback } });
    expect(result, "not a conflict, after which the pod would be read").toMatchObject({ fallback });
    expect(requests).toHaveLength(1);
  });
});

/** Deletes a pod that the cache has in version 5, and that has version 7. */
async function deleted(respond: (seen: PodView, caches: Pick<Caches, "pods">) => unknown) {
  const seen = toPodView(pod("5"));
  const made = anApplier(({ method }) =>
    method === "DELETE" ? respond(seen, made.caches) : { items: [pod("7")] },
  );
  made.caches.pods.apply(seen);
  const action = { type: "delete-pod", pipe: aStatefulPipe(), pod: seen, isFailed: true } as const;
  const result = await apply(made.applier, action);
  const cached = made.caches.pods.get("pipes/a-1")?.metadata.resourceVersion;
  return { ...made, result, cached, record: made.applier.writes.get("uid-a-1", "delete-pod") };
}

describe("the deletion of a pod", () => {
  it("applies only to the version that was seen, because the pod may be ready meanwhile", async () => {
    const { requests, record, result } = await deleted(() => pod("6"));
    expect(requests).toMatchObject([
      {
        method: "DELETE",
        path: "/api/v1/namespaces/pipes/pods/a-1",
        body: { preconditions: { uid: "uid-a-1", resourceVersion: "5" } },
      },
    ]);
    expect([result, record?.outcome.type]).toEqual([undefined, "done"]);
  });

  it("reads a pod that has changed, so that the next decision sees it", async () => {
    const { result, record, cached } = await deleted(() => {
      throw error(409, "Precondition failed");
    });
    expect([result?.isConflict, record?.outcome.type, cached]).toEqual([true, "failed", "7"]);
  });

  it("does not put a pod into the cache again that has left the watch meanwhile, because no event would remove it", async () => {
    const { result, cached } = await deleted((seen, { pods }) => {
      pods.remove(seen);
      throw error(409, "Precondition failed");
    });
    expect([result?.isConflict, cached]).toEqual([true, undefined]);
  });

  it("remembers that the permission is missing", async () => {
    const { record, cached } = await deleted(() => {
      throw error(403, 'pods "a-1" is forbidden: User cannot delete');
    });
    expect(record?.outcome).toMatchObject({ type: "failed", error: { reason: expect.any(String) } });
    expect(cached).toBe("5");
  });
});
