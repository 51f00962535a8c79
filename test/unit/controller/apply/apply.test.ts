import { describe, expect, it } from "vitest";
import { apply } from "../../../../src/controller/apply/apply.ts";
import { TYPE_LABEL } from "../../../../src/controller/names.ts";
import { toPipeView } from "../../../../src/controller/observe/workloads/deployment.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import type { KubeRequest } from "../../../../src/kube/client.ts";
import { KubeApiError, KubeUnreachableError } from "../../../../src/kube/errors.ts";
import type { Deployment } from "../../../../src/kube/workloads.ts";
import { EtcdRollbackError } from "../../../../src/runtime/restart-required.ts";
import { anApplier } from "../../../support/fixtures/applier.ts";
import { pipeDeployment } from "../../../support/fixtures/pipe.ts";
import { aRollout } from "../../../support/fixtures/snapshot.ts";

function deployment(resourceVersion: string, type = "database"): Deployment {
  const made = pipeDeployment({ name: "a", namespace: "pipes", serviceId: "service", cores: 4, type });
  return { ...made, metadata: { ...made.metadata, uid: "uid", resourceVersion, generation: 1 } };
}

/** Lists this one Deployment like the API server, filtered by the label selector of the request. */
function selected(object: Deployment, { query }: KubeRequest): readonly Deployment[] {
  const selector = query?.["labelSelector"];
  const type = object.metadata.labels?.[TYPE_LABEL];
  return selector === undefined || String(selector).includes(`${TYPE_LABEL}=${type}`) ? [object] : [];
}

it("a refreshed Deployment does not return to the cache after its owner removed the pipe labels", async () => {
  const pipe = toPipeView(deployment("1"));
  const { applier, caches } = anApplier((request) => {
    // The watch delivers the new label before the response, which contains a later status.
    caches.pipes.of("Deployment").remove(toPipeView(deployment("2", "files")));
    return { items: selected(deployment("3", "files"), request) };
  });
  caches.pipes.of(pipe.kind).apply(pipe);
  await apply(applier, { type: "refresh", pipe });
  expect([...caches.pipes.values()]).toEqual([]);
});

describe("a write to a pipe", () => {
  const resize = { type: "resize", container: "pipe", rollout: aRollout(sizeOfCores(4)) } as const;
  const pipe = toPipeView(deployment("5"));
  /** Writes with this error, and then reads the Deployment in this version. */
  const written = async (error: Error, version = "7") => {
    const made = anApplier(({ method }) => {
      if (method === "PATCH") throw error;
      return { items: [deployment(version)] };
    });
    made.caches.pipes.of(pipe.kind).apply(pipe);
    const result = await apply(made.applier, { ...resize, pipe }).catch((each: unknown) => each);
    return { ...made, result, record: made.applier.writes.get("uid", "resize") };
  };
  const conflict = new KubeApiError(
    "PATCH",
    409,
    JSON.stringify({ message: "the object has been modified" }),
  );

  it("reads the Deployment after a conflict, and keeps a higher version", async () => {
    const { caches, record, result } = await written(conflict);
    expect(result).toMatchObject({ isConflict: true });
    expect(record).toMatchObject({ attempts: 1, outcome: { type: "failed", error: { isConflict: true } } });
    expect([...caches.pipes.values()]).toMatchObject([{ metadata: { resourceVersion: "7" } }]);
  });

  it("ends the process if the Deployment is older than it was, because etcd was restored", async () => {
    const { result, state } = await written(conflict, "4");
    expect(result).toBeInstanceOf(EtcdRollbackError);
    expect(state.isRolledBack).toBe(true);
  });

  it("has an unknown outcome without a response, until the Deployment is read", async () => {
    const { applier, record } = await written(new KubeUnreachableError("no response"));
    expect(record?.outcome.type).toBe("unknown");
    await apply(applier, { type: "refresh", pipe });
    expect(applier.writes.get("uid", "resize")?.outcome).toMatchObject({
      type: "failed",
      error: { message: "no response" },
    });
  });

  it("is refused with the message of the server, and the error ends nothing else", async () => {
    const refusal = new KubeApiError("PATCH", 422, JSON.stringify({ message: "too large" }));
    const { record, result, requests } = await written(refusal);
    expect(result).toEqual({ reason: "Refused", message: "too large" });
    expect(record?.outcome).toMatchObject({ error: { reason: "Refused", message: "too large" } });
    expect(requests).toHaveLength(1);
  });
});

describe("the creation of a PipeScaling", () => {
  const created = async (error: Error) => {
    const { applier } = anApplier(() => Promise.reject(error));
    const action = { type: "create-pipe-scaling", namespace: "pipes", name: "service", spec: {} } as const;
    const result = await apply(applier, action).catch((each: unknown) => each);
    return { result, outcome: applier.writes.get("pipes/service", "create")?.outcome };
  };

  it("waits for the time in Retry-After alone, because a pipe may be in a commit", async () => {
    const denied = new KubeApiError("POST", 429, "{}", { retryAfterHeader: "60" });
    const error = { reason: "WriteFailed", retryAfterMs: 60_000 };
    const { result, outcome } = await created(denied);
    expect(result).toMatchObject(error);
    expect(outcome).toMatchObject({ type: "failed", error });
  });

  it("fails its reconciliation after any other error", async () => {
    const error = new KubeApiError("POST", 500, "{}");
    expect((await created(error)).result).toBe(error);
  });
});
