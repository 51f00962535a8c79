import { describe, expect, it } from "vitest";
import { apply } from "../../../../src/controller/apply/apply.ts";
import { LAST_ROLLOUT_ANNOTATION } from "../../../../src/controller/names.ts";
import { formatLastRollout } from "../../../../src/controller/observe/last-rollout.ts";
import { toPipeView } from "../../../../src/controller/observe/workloads/deployment.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../../../src/crd/names.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import type { FieldsV1, ManagedFields } from "../../../../src/kube/objects.ts";
import type { Container } from "../../../../src/kube/pods.ts";
import type { Deployment } from "../../../../src/kube/workloads.ts";
import { anApplier } from "../../../support/fixtures/applier.ts";
import { pipeDeployment } from "../../../support/fixtures/pipe.ts";
import { aRollout } from "../../../support/fixtures/snapshot.ts";

const OWNER: ManagedFields = {
  manager: "helm",
  operation: "Apply",
  fieldsV1: { "f:spec": { "f:template": {} } },
};
const SIZED: Container["resources"] = { requests: { cpu: "4", memory: "16Gi" }, limits: { memory: "16Gi" } };

function fieldsOf(resources: FieldsV1): FieldsV1 {
  const containers = { "f:containers": { 'k:{"name":"pipe"}': { "f:resources": resources } } };
  return { "f:spec": { "f:template": { "f:spec": containers } } };
}

const SIZE_FIELDS = { "f:requests": { "f:cpu": {}, "f:memory": {} }, "f:limits": { "f:memory": {} } };

function deployment(resources: Container["resources"], managedFields: readonly ManagedFields[]): Deployment {
  const made = pipeDeployment({ name: "a", namespace: "pipes", serviceId: "service" });
  const containers = [{ name: "pipe", ...(resources ? { resources } : {}) }];
  return {
    ...made,
    metadata: { ...made.metadata, uid: "uid", resourceVersion: "1", generation: 1, managedFields },
    spec: { ...made.spec, template: { ...made.spec.template, spec: { containers } } },
  };
}

const ANNOTATION = { "f:metadata": { "f:annotations": { [`f:${LAST_ROLLOUT_ANNOTATION}`]: {} } } };

/** The Deployment with the annotation that the controller writes, and its writer. */
function annotated(manager: string): Deployment {
  const made = deployment(SIZED, [OWNER, { manager, operation: "Update", fieldsV1: ANNOTATION }]);
  const annotations = { [LAST_ROLLOUT_ANNOTATION]: formatLastRollout(aRollout(sizeOfCores(4)), "uid") };
  return { ...made, metadata: { ...made.metadata, annotations } };
}

/** The requests by which the controller adopts a Deployment. @param patched the response to its patches */
async function adopt(object: Deployment, ownsSize = true, patched = object) {
  const { applier, requests } = anApplier(({ method }) =>
    method === "PATCH" ? patched : { items: [object] },
  );
  const pipe = toPipeView(object);
  applier.caches.pipes.of(pipe.kind).apply(pipe);
  await apply(applier, { type: "adopt", pipe, rollout: aRollout(sizeOfCores(4)), ownsSize });
  return requests;
}

/** The records in the patch. */
async function recordsAfter(object: Deployment): Promise<readonly ManagedFields[]> {
  const [, patch] = await adopt(object);
  const { metadata }: Deployment = JSON.parse(JSON.stringify(patch?.body));
  return metadata.managedFields ?? [];
}

describe("the adoption of a pipe", () => {
  it("adds the fields of the size to the records of the Deployment, and changes no field of its spec", async () => {
    const [, patch] = await adopt(deployment(SIZED, [OWNER]));
    expect(patch?.body).toMatchObject({
      metadata: {
        uid: "uid",
        resourceVersion: "1",
        annotations: { [LAST_ROLLOUT_ANNOTATION]: expect.any(String) },
        managedFields: [
          OWNER,
          {
            manager: CONTROLLER_FIELD_MANAGER,
            operation: "Update",
            apiVersion: "apps/v1",
            fieldsType: "FieldsV1",
            fieldsV1: fieldsOf(SIZE_FIELDS),
          },
        ],
      },
      spec: undefined,
    });
  });

  it("keeps the fields that the controller owns already", async () => {
    const time = "2026-06-01T12:00:00Z";
    const own = { manager: CONTROLLER_FIELD_MANAGER, operation: "Update", time };
    const some = fieldsOf({ "f:requests": { "f:memory": {} } });
    const before = deployment(SIZED, [{ ...own, fieldsV1: { ...ANNOTATION, ...some } }, OWNER]);
    expect(await recordsAfter(before)).toEqual([
      OWNER,
      { ...own, fieldsV1: { ...ANNOTATION, ...fieldsOf(SIZE_FIELDS) } },
    ]);
  });

  it("owns only fields that the container has, so that it adds none to the template", async () => {
    const [, own] = await recordsAfter(deployment({ limits: { cpu: "4", memory: "16Gi" } }, [OWNER]));
    // A CPU limit that follows the size is one of them.
    expect(own?.fieldsV1).toEqual(fieldsOf({ "f:limits": { "f:memory": {}, "f:cpu": {} } }));
  });

  it("leaves a CPU limit that does not follow the size to its owner", async () => {
    const limits = { cpu: "8", memory: "16Gi" };
    const [, own] = await recordsAfter(deployment({ ...SIZED, limits }, [OWNER]));
    expect(own?.fieldsV1).toEqual(fieldsOf(SIZE_FIELDS));
  });

  it("does not read the Deployment if the controller owns the size", async () => {
    const requests = await adopt(deployment(SIZED, [OWNER]), false, annotated(CONTROLLER_FIELD_MANAGER));
    expect(requests.map(({ method }) => method)).toEqual(["PATCH"]);
  });

  it("takes over the same annotation from another writer, such as kubectl rollout undo", async () => {
    const restored = annotated("kubectl-rollout");
    const requests = await adopt(restored, false);
    // A patch with the same value changes no owner.
    expect(requests.map(({ method }) => method)).toEqual(["PATCH", undefined, "PATCH"]);
    expect(requests[2]?.body).toMatchObject({
      metadata: {
        managedFields: [
          ...(restored.metadata.managedFields ?? []),
          { manager: CONTROLLER_FIELD_MANAGER, fieldsV1: ANNOTATION },
        ],
      },
    });
  });

  it("is not repeated if something removes the annotation", async () => {
    const requests = await adopt(deployment(SIZED, [OWNER]), false);
    expect(requests.map(({ method }) => method)).toEqual(["PATCH", undefined]);
  });
});
