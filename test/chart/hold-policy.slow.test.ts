import { randomUUID } from "node:crypto";
import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LAST_ROLLOUT_ANNOTATION, REVISION_HASH_LABEL } from "../../src/controller/names.ts";
import { HOLD } from "../../src/controller/observe/workloads/stateful-set.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../src/crd/names.ts";
import { sizeOfCores } from "../../src/domain/size.ts";
import type { KubeRequest } from "../../src/kube/client.ts";
import type { KubeObject, ManagedFields } from "../../src/kube/objects.ts";
import { collectionPath, STATEFUL_SETS } from "../../src/kube/paths.ts";
import { install } from "./accounts.ts";
import { dryRunOf, expectDenied } from "./denials.ts";
import { withOneOlder } from "./records-by-age.ts";
import { type PatchOfPipe, pipeStatefulSet, StatefulPipes } from "./stateful-pipes.ts";
import {
  amounts,
  annotationOf,
  hold,
  ofCores,
  partition,
  release,
  releaseAndResize,
  resize,
  template,
  UNLABEL,
} from "./stateful-writes.ts";

// Each test sends the writes that begin and end a commit, as the controller or a thief of its token could.
const LABELED = "only StatefulSets with the labels";
const PARTITION = "the partition of a StatefulSet only by";
/** Names the controller as the one that holds the pods. */
const RECORD = {
  manager: CONTROLLER_FIELD_MANAGER,
  operation: "Update",
  apiVersion: "apps/v1",
  fieldsType: "FieldsV1",
  fieldsV1: { "f:spec": { "f:updateStrategy": { "f:rollingUpdate": { "f:partition": {} } } } },
};
const FORGET = { metadata: { managedFields: [{}] } };

let pipes: StatefulPipes;
beforeAll(async () => {
  pipes = await StatefulPipes.start(await sharedCluster());
  await pipes.create("only");
  await pipes.create("on-delete", { spec: { updateStrategy: { type: "OnDelete" } } });
  await pipes.create("partitioned", {
    resources: amounts("1", "4Gi", { cpu: "8" }),
    spec: { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 1 } } },
  });
});
afterAll(() => pipes?.end());

/** Creates a pipe whose owner has this partition, and holds it, as the controller begins a commit. */
async function heldPipe(name: string, owners = 0, annotatedUid?: string): Promise<void> {
  await pipes.create(name);
  if (owners > 0) await pipes.own(name, { spec: partition(owners) });
  const annotated = annotationOf(annotatedUid ?? (await pipes.uidOf(name)));
  await pipes.write(name, { ...annotated, ...hold(2, owners) });
}

/** Tries to remove the record of the controller for the partition, together with other changes. */
function yieldPartition(name: string, change: PatchOfPipe = {}) {
  return pipes.sendManagers(
    name,
    (records) =>
      records.map((each) => {
        if (each.manager !== CONTROLLER_FIELD_MANAGER) return each;
        const { "f:updateStrategy": strategy, ...spec } = each.fieldsV1?.["f:spec"] ?? {};
        expect(strategy).toBeDefined();
        return { ...each, fieldsV1: { ...each.fieldsV1, "f:spec": spec } };
      }),
    change,
  );
}

describe("with the token of the controller, the pods of a StatefulSet", () => {
  it("may be held together with a change of the size, whatever the partition of the owner is", async () => {
    expect(await pipes.send("only", hold(2))).toBe("accepted");
    expect(await pipes.send("only", { ...annotationOf(await pipes.uidOf("only")), ...hold(2) })).toBe(
      "accepted",
    );
    expect(await pipes.send("partitioned", hold(2, 1))).toBe("accepted");
  });

  it("may be held together with a memory limit only, which falls, rises, or is the first one", async () => {
    const wide = { requests: { cpu: "1", memory: "4Gi" }, limits: { memory: "8Gi" } };
    await pipes.create("wide", { resources: wide });
    expect(await pipes.send("wide", hold(1))).toBe("accepted");
    const lowered = annotationOf(await pipes.uidOf("wide"), { size: sizeOfCores(1), lastGoodSize: wide });
    await pipes.write("wide", { ...lowered, ...hold(1) });
    await pipes.write("wide", release());
    const raised = { ...template(wide), ...partition(HOLD) };
    expect(await pipes.send("wide", { spec: raised })).toBe("accepted");
    await pipes.create("unlimited", { resources: { requests: wide.requests } });
    expect(await pipes.send("unlimited", hold(1))).toBe("accepted");
  });

  it.each<[string, object]>([
    ["alone", partition(HOLD)],
    [
      "together with the same size in other words",
      { ...template(amounts("1000m", "4294967296")), ...partition(HOLD) },
    ],
  ])("may not be held %s", async (_, spec) => {
    expectDenied(await pipes.send("only", { spec }), "only together with a change of its size");
  });

  it("may not be held together with a CPU limit only", async () => {
    const spec = { ...template({ limits: { cpu: "1" } }), ...partition(HOLD + 1) };
    expectDenied(await pipes.send("partitioned", { spec }), "only together with a change of its size");
  });

  it.each<[string, string, number | null]>([
    ["1", "only", 1],
    ["one less than a hold", "only", HOLD - 1],
    ["one more than a hold", "only", HOLD + 1],
    ["the largest integer", "only", 2 ** 31 - 1],
    ["less than its owner set", "partitioned", 0],
    ["more than its owner set", "partitioned", 2],
    ["a hold without the partition of its owner", "partitioned", HOLD],
    ["the default, instead of that of its owner", "partitioned", null],
  ])("may not get the partition %s", async (_, name, value) => {
    expectDenied(await pipes.send(name, { spec: { ...ofCores(2), ...partition(value) } }), PARTITION);
    expectDenied(await pipes.send(name, { spec: partition(value) }), PARTITION);
  });

  it("may not be held in the name of another manager", async () => {
    const request = pipes.request(pipes.path("only"), hold(2), "helm");
    const sentence = "may not change the field managers of a StatefulSet";
    expectDenied(await dryRunOf(pipes.controller, request), sentence);
  });

  it("may be held only with a partition, which the strategy OnDelete does not have", async () => {
    expect(await pipes.send("on-delete", hold(2))).toMatch(/^422 .*only allowed for updateStrategy/s);
  });
});

describe("with the token of the controller, a StatefulSet whose pods the controller holds", () => {
  beforeAll(async () => {
    await heldPipe("held");
    await heldPipe("held-with-partition", 2);
  });

  it("may be released to the partition of its owner", async () => {
    expect(await pipes.send("held", release())).toBe("accepted");
    expect(await pipes.send("held", { spec: partition(null) })).toBe("accepted");
    expect(await pipes.send("held-with-partition", release(2))).toBe("accepted");
  });

  it("may get its old size together with the release", async () => {
    const taken = annotationOf(await pipes.uidOf("held"), { size: sizeOfCores(1) });
    expect(await pipes.send("held", { ...taken, ...releaseAndResize(1) })).toBe("accepted");
  });

  it.each(["2001-01-01T00:00:00Z", "2100-01-01T00:00:00Z"])(
    "may not have a record of the controller of the time %s",
    async (time) => {
      const outcome = await pipes.sendManagers("held", (records) =>
        records.map((each) => (each.manager === RECORD.manager ? { ...RECORD, time } : each)),
      );
      expectDenied(outcome, "may not choose the time of its record");
    },
  );

  it("may get another size while it stays held", async () => {
    expect(await pipes.send("held", resize(4))).toBe("accepted");
  });

  it.each([0, 1, 3, 2 ** 31 - 1])(
    "may not be released to %d instead of the partition of its owner",
    async (value) => {
      expectDenied(await pipes.send("held-with-partition", release(value)), PARTITION);
    },
  );

  it("may not be held twice", async () => {
    expectDenied(await pipes.send("held", { spec: { ...ofCores(4), ...partition(2 * HOLD) } }), PARTITION);
  });

  it.each<[string, object, string]>([
    [
      "another image",
      { template: { spec: { containers: [{ name: "pipe", image: "evil" }] } } },
      "one container",
    ],
    ["other replicas", { replicas: 5 }, "only the size of a container in the spec"],
    ["a size of no tier", template({ requests: { cpu: "1001m" } }), "only the sizes of tiers"],
  ])("may not get %s together with the release", async (_, spec, sentence) => {
    expectDenied(await pipes.send("held", { spec: { ...spec, ...partition(0) } }), sentence);
  });

  it("may lose the record of the controller for the partition after the release, but not before", async () => {
    await heldPipe("yielded");
    expectDenied(await yieldPartition("yielded"), "that it does not change");
    await pipes.write("yielded", release());
    expect(await yieldPartition("yielded")).toBe("accepted");
  });
});

describe("with the token of the controller, a StatefulSet that lost the labels of a pipe", () => {
  beforeAll(async () => {
    await heldPipe("departed");
    await pipes.own("departed", UNLABEL);
  });

  it("may be released if the controller holds its pods", async () => {
    expect(await pipes.send("departed", release())).toBe("accepted");
    const taken = annotationOf(await pipes.uidOf("departed"), { size: sizeOfCores(1) });
    expect(await pipes.send("departed", { ...taken, ...releaseAndResize(1) })).toBe("accepted");
  });

  it.each([
    ["a size", resize(4)],
    ["an annotation", { metadata: { annotations: { [LAST_ROLLOUT_ANNOTATION]: "{}" } } }],
  ])("may not get %s without being released", async (_, body) => {
    expectDenied(await pipes.send("departed", body), LABELED);
  });

  it("may lose the record of the controller once it is released, and not be changed any more", async () => {
    await heldPipe("ended");
    await pipes.own("ended", UNLABEL);
    expectDenied(await yieldPartition("ended"), LABELED);
    await pipes.write("ended", release());
    expect(await yieldPartition("ended")).toBe("accepted");
    const annotated = annotationOf(await pipes.uidOf("ended"), { isCommitting: false });
    for (const change of [resize(4), annotated]) expectDenied(await yieldPartition("ended", change), LABELED);
    expectDenied(await pipes.send("ended", resize(4)), LABELED);
    expectDenied(await pipes.send("ended", hold(4)), LABELED);
  });

  it("may not be released if its annotation is that of another StatefulSet", async () => {
    await heldPipe("copied", 0, randomUUID());
    await pipes.own("copied", UNLABEL);
    expectDenied(await pipes.send("copied", release()), LABELED);
  });
});

describe("with the token of the controller, the partition of an owner", () => {
  /** Server-side apply of a partition. */
  function confirm(name: string, value: number, fieldManager: string): KubeRequest {
    return {
      method: "PATCH",
      path: pipes.path(name),
      query: { fieldManager, force: true },
      patchType: "application/apply-patch+yaml",
      body: { apiVersion: "apps/v1", kind: "StatefulSet", metadata: { name }, spec: partition(value) },
    };
  }
  const MANAGERS = "the field managers of a partition that it does not change";
  const HUGE = { spec: partition(HOLD + 5) };

  it.each([HOLD, 2 ** 31 - 1])("may not change from %i, which keeps all pods, in a commit", async (value) => {
    const name = `keeps-${value}`;
    await pipes.create(name);
    await pipes.own(name, { spec: partition(value) });
    const uid = await pipes.uidOf(name);
    const committing = annotationOf(uid, { isCommitting: true, isUnheld: true });
    const resized = { ...committing, ...resize(2) };
    expectDenied(
      await pipes.send(name, { ...committing, spec: { ...ofCores(2), ...partition(0) } }),
      PARTITION,
    );
    expect(await pipes.send(name, resized)).toBe("accepted");
    await pipes.write(name, resized);
    for (const ended of [annotationOf(uid), { ...annotationOf(uid, { size: sizeOfCores(1) }), ...resize(1) }])
      expect(await pipes.send(name, ended)).toBe("accepted");
    await pipes.own(name, FORGET);
    expect(await pipes.send(name, annotationOf(uid))).toBe("accepted");
    expect(await pipes.send(name, { ...committing, ...resize(4) })).toBe("accepted");
  });

  it("may not be lowered, even if it looks like a hold", async () => {
    await pipes.create("of-owner");
    await pipes.own("of-owner", HUGE);
    expect(await pipes.send("of-owner", resize(2))).toBe("accepted");
    expectDenied(await pipes.send("of-owner", release(5)), PARTITION);
  });

  it("may not be lowered if the owner confirmed the hold of the controller", async () => {
    await heldPipe("confirmed");
    await pipes.admin.json(confirm("confirmed", HOLD, "owner"));
    expectDenied(await pipes.send("confirmed", release()), PARTITION);
  });

  it("may not be made to look like a hold of the controller", async () => {
    await pipes.create("disguised");
    await pipes.own("disguised", HUGE);
    const request = confirm("disguised", HOLD + 5, CONTROLLER_FIELD_MANAGER);
    expectDenied(await dryRunOf(pipes.controller, request), MANAGERS);
    for (const managedFields of [[RECORD], [{}]])
      expectDenied(await pipes.send("disguised", { metadata: { managedFields } }), MANAGERS);
  });

  it("may be lowered by the number of a hold where somebody removed the field managers", async () => {
    await heldPipe("forgotten");
    await pipes.own("forgotten", FORGET);
    expect(await pipes.send("forgotten", release())).toBe("accepted");
    await pipes.own("forgotten", UNLABEL);
    expect(await pipes.send("forgotten", release())).toBe("accepted");
    expectDenied(await pipes.send("forgotten", release(1)), LABELED);
  });

  it("may be restored after its owner applied the StatefulSet, because a hold must come with a record where somebody removed the field managers", async () => {
    await pipes.create("recorded");
    await pipes.own("recorded", FORGET);
    const { metadata } = annotationOf(await pipes.uidOf("recorded"));
    // The first apply would give such a hold to a manager of the past.
    expectDenied(await pipes.send("recorded", { metadata, ...hold(2) }), "only in its own name");
    await pipes.write("recorded", { metadata: { ...metadata, managedFields: [RECORD] }, ...hold(2) });
    const body = { apiVersion: "apps/v1", kind: "StatefulSet", metadata: { labels: { team: "a" } } };
    await pipes.admin.json({ ...confirm("recorded", 0, "owner"), body });
    expect(await pipes.send("recorded", release())).toBe("accepted");
    expect(await pipes.send("recorded", releaseAndResize(1))).toBe("accepted");
  });

  it("may not get such a record", async () => {
    await pipes.create("unrecorded");
    await pipes.own("unrecorded", HUGE);
    await pipes.own("unrecorded", FORGET);
    const metadata = { managedFields: [RECORD] };
    expectDenied(await pipes.send("unrecorded", { metadata }), MANAGERS);
    expectDenied(await pipes.send("unrecorded", { metadata, ...resize(2) }), MANAGERS);
  });

  it("stays as it is, with its field managers, in each resize of a StatefulSet with more than ten", async () => {
    await pipes.create("edited");
    await edit("edited", 12);
    expect(await pipes.send("edited", resize(2))).toBe("accepted");
    expect(await pipes.send("edited", hold(2))).toBe("accepted");
  });
});

/** Adds the records of this many writers; the API server keeps ten. */
async function edit(name: string, writers: number): Promise<void> {
  for (let index = 0; index < writers; index += 1) {
    const body = { metadata: { annotations: { [`example.com/a${index}`]: "a" } } };
    await pipes.admin.json(pipes.request(pipes.path(name), body, `editor-${index}`));
  }
}

/** The API server merges the record of this manager first, also if all are of the same second. */
const CREATOR = "creator";

/** Creates a pipe by an update, as `kubectl create` does, with a partition, and with ten writers. */
async function createdPipe(name: string): Promise<void> {
  const body = pipeStatefulSet(name, pipes.release.pipes, {
    spec: { updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 1 } } },
  });
  await pipes.admin.json({
    method: "POST",
    path: collectionPath(STATEFUL_SETS, pipes.release.pipes),
    query: { fieldManager: CREATOR },
    body,
  });
  // The controller manager writes the status.
  await waitFor(async () => (await recordsOf(name)).length === 2, { what: "the status" });
  await edit(name, 8);
}

async function metadataOf(name: string): Promise<KubeObject["metadata"]> {
  return (await pipes.admin.json<KubeObject>({ path: pipes.path(name) })).metadata;
}

async function recordsOf(name: string): Promise<readonly ManagedFields[]> {
  return (await metadataOf(name)).managedFields ?? [];
}

/** Managers of the partition. */
const holdersOf = (records: readonly ManagedFields[]) =>
  records
    .filter((each) => JSON.stringify(each.fieldsV1).includes('"f:partition"'))
    .map((each) => each.manager);

describe("with the token of the controller, the partition of a StatefulSet with ten field managers", () => {
  const KEPT = "may not change the field managers of a partition that it does not change";

  it("may not become that of older changes with a hold", async () => {
    await createdPipe("created");
    expect(holdersOf(await recordsOf("created"))).toEqual([CREATOR]);
    const request = pipes.request(pipes.path("created"), hold(2, 1), "ancient-changes");
    const outcome = await dryRunOf(pipes.controller, request);
    expectDenied(outcome, "the controller may");
    // The records have whole seconds, and the API server merges other ones if the writers took more than one.
    expect(outcome).toMatch(
      /of a StatefulSet only in its own name|not change the field managers of a StatefulSet/,
    );
    expect(await pipes.send("created", hold(2, 1))).toBe("accepted");
  });

  it("may not lose its record with a hold in the name of older changes", async () => {
    await createdPipe("lost");
    const attempt = async () => {
      const body = withOneOlder(await metadataOf("lost"));
      await pipes.admin.json(pipes.request(pipes.path("lost"), body, "editor-1"));
      const request = pipes.request(pipes.path("lost"), hold(2, 1), "ancient-changes");
      const outcome = await dryRunOf(pipes.controller, request);
      // The controller manager has written the status meanwhile, so that the API server merged other records.
      return outcome.includes("the field managers of a StatefulSet") ? undefined : outcome;
    };
    expectDenied(await waitFor(attempt, { what: "the record to be lost" }), "only in its own name");
  });

  it("may become that of older changes when the API server merges the record of its owner", async () => {
    await createdPipe("merged");
    const written = await pipes.write("merged", resize(2));
    expect(holdersOf(written.metadata.managedFields ?? [])).toEqual(["ancient-changes"]);
    await pipes.write("merged", { ...annotationOf(await pipes.uidOf("merged")), ...hold(4, 1) });
    expect(holdersOf(await recordsOf("merged"))).toEqual([CONTROLLER_FIELD_MANAGER]);
    expect(await pipes.send("merged", release(1))).toBe("accepted");
  });

  it("may not lose a record of its owner, who confirmed the hold", async () => {
    await heldPipe("confirmed-by-one");
    await edit("confirmed-by-one", 12);
    await pipes.admin.json({
      method: "PATCH",
      path: pipes.path("confirmed-by-one"),
      query: { fieldManager: "owner", force: true },
      patchType: "application/apply-patch+yaml",
      body: { apiVersion: "apps/v1", kind: "StatefulSet", spec: partition(HOLD) },
    });
    const outcome = await pipes.sendManagers("confirmed-by-one", (records) =>
      records.filter(({ manager }) => manager !== "owner"),
    );
    expectDenied(outcome, KEPT);
    expectDenied(await pipes.send("confirmed-by-one", release()), PARTITION);
  });

  it("may not get a record of older changes while the controller holds the pods", async () => {
    await createdPipe("held-by-one");
    await pipes.write("held-by-one", hold(2, 1));
    const claim = (records: readonly ManagedFields[]) =>
      records.map((each) => {
        const { "f:spec": spec, ...others } = each.fieldsV1 ?? {};
        const fieldsV1 = { ...others, "f:spec": { ...spec, ...RECORD.fieldsV1["f:spec"] } };
        return each.manager === "ancient-changes" ? { ...each, fieldsV1 } : each;
      });
    expect((await recordsOf("held-by-one")).map(({ manager }) => manager)).toContain("ancient-changes");
    expectDenied(await pipes.sendManagers("held-by-one", claim), KEPT);
    expect(await pipes.send("held-by-one", release(1))).toBe("accepted");
  });

  it("may not get the record of the controller", async () => {
    await createdPipe("claimed");
    const time = new Date().toISOString();
    for (const lost of ["", CREATOR, "editor-0"]) {
      const outcome = await pipes.sendManagers("claimed", (records) => [
        ...records.filter(({ manager }) => manager !== lost),
        { ...RECORD, time },
      ]);
      expectDenied(outcome, KEPT);
    }
  });
});

it("the pods of a StatefulSet may be released, but not held, after resizes in place are forbidden", async () => {
  await heldPipe("late", 2);
  const without = "crds.enabled=false,rbac.inPlaceResize=false,controller.config.resizeStrategy=Rollout";
  await install(await sharedCluster(), pipes.release, "--set", without);
  const isDenied = async () =>
    (await pipes.send("only", hold(2))).includes("the controller may not hold the pods of a StatefulSet");
  await waitFor(isDenied, { what: "the hold to be denied" });
  expect(await pipes.send("only", resize(2))).toBe("accepted");
  expect(await pipes.send("late", release(2))).toBe("accepted");
  const label = { metadata: { labels: { [REVISION_HASH_LABEL]: "first-6d8f" } } };
  expect(await pipes.patchPod("first-0", label)).toMatch(/^403 /);
});
