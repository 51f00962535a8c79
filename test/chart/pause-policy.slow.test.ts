import type { Cluster } from "@pipe-scaling/local-cluster";
import { apply, kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LAST_ROLLOUT_ANNOTATION, SERVICE_LABEL, TYPE_LABEL } from "../../src/controller/names.ts";
import { formatLastRollout, type LastRollout } from "../../src/controller/observe/last-rollout.ts";
import { resourcesFor } from "../../src/controller/observe/resources.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../src/crd/names.ts";
import { sizeOfCores } from "../../src/domain/size.ts";
import type { KubeClient, KubeRequest } from "../../src/kube/client.ts";
import type { ManagedFields } from "../../src/kube/objects.ts";
import { DEPLOYMENTS, objectPath } from "../../src/kube/paths.ts";
import type { Deployment } from "../../src/kube/workloads.ts";
import { pipeDeployment } from "../support/fixtures/pipe.ts";
import { aRollout } from "../support/fixtures/snapshot.ts";
import { PatientClient } from "../support/patient-client.ts";
import { clientOf, install, prepareRelease, type Release, remove } from "./accounts.ts";
import { dryRunOf, expectDenied } from "./denials.ts";
import { withOneOlder } from "./records-by-age.ts";

// Each test sends the writes that begin and end a commit, as the controller or a thief of its token could.
const LABELS = { [SERVICE_LABEL]: "a", [TYPE_LABEL]: "database" };
const OWN = "only a Deployment that it paused itself";
const MANAGERS = "may not change the field managers of spec.paused";
const LABELED = "only Deployments with the labels";

let cluster: Cluster;
let release: Release;
let controller: KubeClient;
let admin: PatientClient;

beforeAll(async () => {
  cluster = await sharedCluster();
  release = await prepareRelease(cluster);
  await install(cluster, release, "--set", "crds.enabled=false");
  controller = await clientOf(cluster, release, "controller");
  admin = await PatientClient.of(cluster);
  await createPipe("only");
  const isDenied = async () => (await send("only", PAUSE)).includes("ValidatingAdmissionPolicy");
  await waitFor(isDenied, { what: "the policy to be in force" });
});
afterAll(async () => {
  await controller?.close();
  await admin?.close();
  if (release) await remove(cluster, release);
});

function createPipe(name: string, resources: object = resourcesFor(sizeOfCores(1), false)): Promise<unknown> {
  const { metadata, spec, ...kind } = pipeDeployment({
    name,
    namespace: release.pipes,
    serviceId: "a",
    podLabels: LABELS,
    replicas: 0,
  });
  const containers = spec.template.spec.containers.map((each) => ({ ...each, resources }));
  const template = { ...spec.template, spec: { ...spec.template.spec, containers } };
  return apply(cluster, [{ ...kind, metadata, spec: { ...spec, template } }]);
}

const pathOf = (name: string) => objectPath(DEPLOYMENTS, release.pipes, name);

function patch(name: string, body: object, fieldManager = CONTROLLER_FIELD_MANAGER): KubeRequest {
  const patchType = "application/strategic-merge-patch+json";
  return { method: "PATCH", path: pathOf(name), query: { fieldManager }, patchType, body };
}

/** Returns the outcome of a write of the controller, which is not stored. */
const send = (name: string, body: object) => dryRunOf(controller, patch(name, body));

/** Stores a write of the controller. */
const write = (name: string, body: object) => controller.json<Deployment>(patch(name, body));

/** Stores a write of the owner. */
const own = (name: string, body: object) => admin.json<Deployment>(patch(name, body, "owner"));

const PAUSE = { spec: { paused: true } };
const RESUME = { spec: { paused: null } };
const template = (resources: object) => ({
  template: { spec: { containers: [{ name: "pipe", resources }] } },
});
const ofCores = (cores: number) => template(resourcesFor(sizeOfCores(cores), false));
const resize = (cores: number) => ({ spec: ofCores(cores) });
const pauseAndResize = { spec: { ...PAUSE.spec, ...ofCores(2) } };
/** Takes a commit back. */
const resumeAndResize = (cores: number) => ({ spec: { ...RESUME.spec, ...ofCores(cores) } });
const UNLABEL = { metadata: { labels: { [SERVICE_LABEL]: null, [TYPE_LABEL]: null } } };

/** Names the controller as the one that paused a Deployment. */
const RECORD = {
  manager: CONTROLLER_FIELD_MANAGER,
  operation: "Update",
  apiVersion: "apps/v1",
  fieldsType: "FieldsV1",
  fieldsV1: { "f:spec": { "f:paused": {} } },
};

function commitOf(uid: string, changed: Partial<LastRollout> = {}) {
  const rollout = aRollout(sizeOfCores(2), { isCommitting: true, ...changed });
  const annotations = { [LAST_ROLLOUT_ANNOTATION]: formatLastRollout(rollout, uid) };
  return { metadata: { annotations } };
}

async function uidOf(name: string): Promise<string> {
  return (await admin.json<Deployment>({ path: pathOf(name) })).metadata.uid;
}

/** Creates a pipe, and pauses it with its next size, as the controller begins a commit. */
async function pausedPipe(name: string, { of }: { readonly of?: string } = {}): Promise<string> {
  await createPipe(name);
  const uid = of ?? (await uidOf(name));
  await write(name, { ...commitOf(uid), ...pauseAndResize });
  return uid;
}

describe("with the token of the controller, a pause of a Deployment", () => {
  it("is allowed together with a change of the size", async () => {
    expect(await send("only", pauseAndResize)).toBe("accepted");
  });

  it("is allowed together with a memory limit only, which falls, rises, or is the first one", async () => {
    const wide = { requests: { cpu: "1", memory: "4Gi" }, limits: { memory: "8Gi" } };
    await createPipe("wide", wide);
    const pauseAndLower = { spec: { ...PAUSE.spec, ...ofCores(1) } };
    expect(await send("wide", pauseAndLower)).toBe("accepted");
    const lowered = commitOf(await uidOf("wide"), { size: sizeOfCores(1), lastGoodSize: wide });
    await write("wide", { ...lowered, ...pauseAndLower });
    await write("wide", RESUME);
    expect(await send("wide", { spec: { ...PAUSE.spec, ...template(wide) } })).toBe("accepted");
    await createPipe("unlimited", { requests: wide.requests });
    expect(await send("unlimited", pauseAndLower)).toBe("accepted");
  });

  it.each([
    ["alone", PAUSE.spec],
    [
      "together with the same size in other words",
      {
        ...PAUSE.spec,
        ...template({ requests: { cpu: "1000m", memory: "4294967296" }, limits: { memory: "4096Mi" } }),
      },
    ],
  ])("is denied %s", async (_, spec) => {
    expectDenied(await send("only", { spec }), "only together with a change of its size");
  });

  it("is denied together with a CPU limit only", async () => {
    const limits = { cpu: "8", memory: "4Gi" };
    await createPipe("limited", { requests: { cpu: "1", memory: "4Gi" }, limits });
    const spec = { ...PAUSE.spec, ...template({ limits: { cpu: "1" } }) };
    expectDenied(await send("limited", { spec }), "only together with a change of its size");
  });

  it("is denied on a Deployment without the labels of a pipe", async () => {
    await createPipe("never");
    await own("never", UNLABEL);
    expectDenied(await send("never", pauseAndResize), LABELED);
    expectDenied(await send("never", { ...commitOf(await uidOf("never")), ...pauseAndResize }), LABELED);
  });
});

describe("with the token of the controller, a Deployment that the controller paused", () => {
  let uid: string;
  beforeAll(async () => {
    uid = await pausedPipe("paused");
  });

  it.each([
    ["removes", RESUME],
    ["sets", { spec: { paused: false } }],
  ])("may be resumed by a write that %s the field", async (_, body) => {
    expect(await send("paused", body)).toBe("accepted");
    expect(await send("paused", { ...commitOf(uid, { isCommitting: false }), ...body })).toBe("accepted");
  });

  it("may get its old size together with the resumption", async () => {
    const taken = commitOf(uid, { isCommitting: false, size: sizeOfCores(1) });
    expect(await send("paused", { ...taken, ...resumeAndResize(1) })).toBe("accepted");
  });

  it("may get back resources that are no size of a tier, which the annotation records", async () => {
    const small = { requests: { cpu: "250m", memory: "1Gi" }, limits: { memory: "1Gi" } };
    await createPipe("small", small);
    const smallUid = await uidOf("small");
    await write("small", { ...commitOf(smallUid, { lastGoodSize: small }), ...pauseAndResize });
    expect(await send("small", { spec: { ...RESUME.spec, ...template(small) } })).toBe("accepted");
    const other = template({ ...small, requests: { cpu: "251m", memory: "1Gi" } });
    expectDenied(await send("small", { spec: { ...RESUME.spec, ...other } }), "only the sizes of tiers");
  });

  it.each([
    ["another image", { containers: [{ name: "pipe", image: "evil" }] }, "only the resources of one"],
    ["another service account", { serviceAccountName: "other" }, "only the size of a container"],
  ])("may not get %s together with the resumption", async (_, spec, sentence) => {
    expectDenied(await send("paused", { spec: { ...RESUME.spec, template: { spec } } }), sentence);
  });

  // The API server sets the time of a record only if a request sets a field.
  it.each(["2001-01-01T00:00:00Z", "2100-01-01T00:00:00Z", undefined])(
    "may not have a record of the controller of the time %s",
    async (time) => {
      const fewer = (records: readonly ManagedFields[]) =>
        records.map((each) => (each.manager === RECORD.manager ? { ...RECORD, time } : each));
      expectDenied(await sendManagers("paused", fewer), "may not choose the time of its record");
      const metadata = { annotations: { [LAST_ROLLOUT_ANNOTATION]: null } };
      const later = (records: readonly ManagedFields[]) =>
        records.map((each) => (each.manager === RECORD.manager ? { ...each, time } : each));
      expectDenied(await sendManagers("paused", later, metadata), "may not choose the time of its record");
    },
  );

  it("may get another size while it stays paused", async () => {
    expect(await send("paused", resize(4))).toBe("accepted");
  });
});

describe("with the token of the controller, a Deployment that lost the labels of a pipe", () => {
  let uid: string;
  beforeAll(async () => {
    uid = await pausedPipe("departed");
    await own("departed", UNLABEL);
  });

  it("may be resumed if the controller paused it", async () => {
    expect(await send("departed", RESUME)).toBe("accepted");
    const ended = commitOf(uid, { isCommitting: false, cameUp: true });
    expect(await send("departed", { ...ended, ...RESUME })).toBe("accepted");
  });

  it("may get its old size together with the resumption", async () => {
    const taken = commitOf(uid, { isCommitting: false, size: sizeOfCores(1) });
    expect(await send("departed", { ...taken, ...resumeAndResize(1) })).toBe("accepted");
  });

  it.each([
    ["a size", resize(4)],
    ["another pause", { spec: { paused: true, ...ofCores(4) } }],
    ["an annotation", { metadata: { annotations: { [LAST_ROLLOUT_ANNOTATION]: "{}" } } }],
  ])("may not get %s without being resumed", async (_, body) => {
    expectDenied(await send("departed", body), LABELED);
  });

  it.each<[string, object, string]>([
    [
      "another image",
      { template: { spec: { containers: [{ name: "pipe", image: "evil" }] } } },
      "only the resources of one",
    ],
    [
      "a size of no tier",
      template({ requests: { cpu: "1001m" } }),
      "only the sizes of tiers, and the last good size",
    ],
    ["other replicas", { replicas: 5 }, "only the size of a container in the spec"],
  ])("may not get %s together with the resumption", async (_, spec, sentence) => {
    expectDenied(await send("departed", { spec: { ...RESUME.spec, ...spec } }), sentence);
  });

  it("may not be changed any more once it is resumed", async () => {
    await pausedPipe("ended");
    await own("ended", UNLABEL);
    await write("ended", RESUME);
    expectDenied(await send("ended", resize(4)), LABELED);
    expectDenied(await send("ended", pauseAndResize), LABELED);
  });

  it("may not be resumed if its owner paused it", async () => {
    await createPipe("departed-of-owner");
    const ownUid = await uidOf("departed-of-owner");
    // The annotation of an earlier commit is still there.
    await write("departed-of-owner", commitOf(ownUid, { isCommitting: false }));
    await own("departed-of-owner", { ...UNLABEL, ...PAUSE });
    expectDenied(await send("departed-of-owner", RESUME), LABELED);
    const taken = await send("departed-of-owner", resumeAndResize(1));
    expectDenied(taken, LABELED);
  });

  it("may not be resumed if its annotation is that of another Deployment", async () => {
    await pausedPipe("copied", { of: uid });
    await own("copied", UNLABEL);
    expectDenied(await send("copied", RESUME), LABELED);
  });

  it("may not be resumed if it never was a pipe, and another writer has the name of the controller", async () => {
    await createPipe("stranger");
    await admin.json(patch("stranger", { ...UNLABEL, ...PAUSE }));
    expectDenied(await send("stranger", RESUME), LABELED);
  });
});

describe("with the token of the controller, the pause of an owner", () => {
  /** Server-side apply of the pause. */
  function confirmPause(name: string, fieldManager: string): KubeRequest {
    return {
      method: "PATCH",
      path: pathOf(name),
      query: { fieldManager, force: true },
      patchType: "application/apply-patch+yaml",
      body: { apiVersion: "apps/v1", kind: "Deployment", metadata: { name }, ...PAUSE },
    };
  }
  it("may not be lifted, but the pipe may get another size", async () => {
    await createPipe("of-owner");
    await own("of-owner", PAUSE);
    expect(await send("of-owner", resize(2))).toBe("accepted");
    expectDenied(await send("of-owner", RESUME), OWN);
    expectDenied(await send("of-owner", resumeAndResize(2)), OWN);
  });

  it("may not be lifted if the owner confirmed the pause of the controller", async () => {
    await pausedPipe("confirmed");
    await admin.json(confirmPause("confirmed", "owner"));
    expectDenied(await send("confirmed", RESUME), OWN);
  });

  it("may not be made to look like one of the controller", async () => {
    await createPipe("disguised");
    await own("disguised", PAUSE);
    const disguised = await dryRunOf(controller, confirmPause("disguised", CONTROLLER_FIELD_MANAGER));
    expectDenied(disguised, MANAGERS);
    for (const managedFields of [[RECORD], [{}]])
      expectDenied(await send("disguised", { metadata: { managedFields } }), MANAGERS);
  });

  it("may not be made to look like one of the controller if the owner confirmed it", async () => {
    await pausedPipe("shared");
    await admin.json(confirmPause("shared", "owner"));
    // An apply in the name of the owner that no longer mentions the pause.
    const withdraw = {
      ...confirmPause("shared", "owner"),
      body: { apiVersion: "apps/v1", kind: "Deployment" },
    };
    expectDenied(await dryRunOf(controller, withdraw), MANAGERS);
  });
});

/** Adds the records of this many writers; the API server keeps ten. */
async function edit(name: string, writers = 11): Promise<void> {
  for (let index = 0; index < writers; index += 1) {
    const annotations = { [`example.com/a${index}`]: "a" };
    await admin.json(patch(name, { metadata: { annotations } }, `editor-${index}`));
  }
}

/** Returns the outcome of a write of the controller with other records of field managers. */
function sendManagers(
  name: string,
  change: (records: readonly ManagedFields[]) => readonly object[],
  others: object = {},
) {
  const attempt = async () => {
    const { metadata } = await admin.json<Deployment>({ path: pathOf(name) });
    const { managedFields = [], resourceVersion } = metadata;
    const changed = { ...others, resourceVersion, managedFields: change(managedFields) };
    const outcome = await send(name, { metadata: changed });
    // The controller manager has written the status meanwhile.
    return outcome.startsWith("409 ") ? undefined : outcome;
  };
  return waitFor(attempt, { what: "a write without a conflict" });
}

describe("with the token of the controller, the field managers of a Deployment that is not paused", () => {
  const without = (manager: string) => (records: readonly ManagedFields[]) => {
    expect(records.map((each) => each.manager)).toContain(manager);
    return records.filter((each) => each.manager !== manager);
  };
  const SENTENCE = "may not change the field managers of a Deployment";

  beforeAll(async () => {
    for (const name of ["applied", "edited"]) {
      await createPipe(name);
      await admin.json({
        method: "PATCH",
        path: pathOf(name),
        query: { fieldManager: "argocd", force: true },
        patchType: "application/apply-patch+yaml",
        body: {
          apiVersion: "apps/v1",
          kind: "Deployment",
          metadata: { name, labels: { team: "a" } },
          spec: { paused: false },
        },
      });
    }
    await edit("edited");
  });

  it.each(["only", "applied", "edited"])("may not say that the controller paused it, of %s", async (name) => {
    const forged = await sendManagers(name, (records) => [...records, RECORD]);
    expectDenied(forged, name === "edited" ? SENTENCE : MANAGERS);
    const { metadata } = await admin.json<Deployment>({ path: pathOf(name) });
    const managedFields = [...(metadata.managedFields ?? []), RECORD];
    expect(await send(name, { metadata: { managedFields }, ...resize(2) })).toMatch(/^(409|422 .*Policy) /s);
  });

  it("may not lose the record of an apply, even if there are more than ten others", async () => {
    expectDenied(await sendManagers("applied", without("argocd")), SENTENCE);
    expectDenied(await sendManagers("edited", without("argocd")), SENTENCE);
    expectDenied(await sendManagers("edited", without("kubectl")), SENTENCE);
  });

  it("may not lose a field in a record that stays, even if there are more than ten", async () => {
    const annotation = (records: readonly ManagedFields[]) =>
      records.map((each) =>
        each.manager === "editor-9" ? { ...each, fieldsV1: { "f:metadata": {} } } : each,
      );
    expectDenied(await sendManagers("edited", annotation), SENTENCE);
    const emptied = (records: readonly ManagedFields[]) =>
      records.map((each) => (each.manager === "ancient-changes" ? { ...each, fieldsV1: {} } : each));
    expectDenied(await sendManagers("edited", emptied), SENTENCE);
  });

  it("may not be said to be those of older changes, even if there are more than ten", async () => {
    const sent = (body: object) => dryRunOf(controller, patch("edited", body, "ancient-changes"));
    expectDenied(await sent(pauseAndResize), SENTENCE);
    expectDenied(await sent(resize(2)), SENTENCE);
    expectDenied(await sent(commitOf(await uidOf("edited"), { isCommitting: false })), SENTENCE);
    // An apply, in the same name, of what its owner has.
    const request = { ...patch("edited", {}), patchType: "application/apply-patch+yaml" } as const;
    const body = { apiVersion: "apps/v1", kind: "Deployment", metadata: { labels: { team: "a" } } };
    const query = { fieldManager: "ancient-changes" };
    expectDenied(await dryRunOf(controller, { ...request, query, body }), SENTENCE);
  });

  it.each([
    ["pause", pauseAndResize, "only in its own name"],
    ["label", { metadata: { labels: { "example.com/thief": "b" } } }, "in the metadata of a Deployment"],
    [
      "annotation",
      { metadata: { annotations: { "example.com/thief": "b" } } },
      "in the metadata of a Deployment",
    ],
  ])("may not lose the record of a %s in the name of older changes", async (what, body, denial) => {
    const name = `lost-${what}`;
    await createPipe(name);
    await edit(name, 9);
    const attempt = async () => {
      const { metadata } = await admin.json<Deployment>({ path: pathOf(name) });
      await admin.json(patch(name, withOneOlder(metadata), "editor-1"));
      const outcome = await dryRunOf(controller, patch(name, body, "ancient-changes"));
      // The controller manager has written the status meanwhile, so that the API server merged other records.
      return outcome.includes(SENTENCE) ? undefined : outcome;
    };
    expectDenied(await waitFor(attempt, { what: "the record to be lost" }), denial);
  });

  it.each(["applied", "edited"])(
    "are those of the API server in each step of a commit, of %s",
    async (name) => {
      const uid = await uidOf(name);
      expect(await send(name, resize(4))).toBe("accepted");
      await write(name, { ...commitOf(uid), ...pauseAndResize });
      await own(name, { metadata: { annotations: { "example.com/b": "b" } } });
      const ended = { ...commitOf(uid, { isCommitting: false }), ...RESUME };
      expect(await send(name, resize(4))).toBe("accepted");
      expect(await send(name, ended)).toBe("accepted");
      await write(name, { ...ended, spec: { ...RESUME.spec, ...ofCores(1) } });
      expect(await send(name, resize(4))).toBe("accepted");
    },
  );
});

describe("with the token of the controller, a Deployment whose field managers somebody removed", () => {
  const FORGET = { metadata: { managedFields: [{}] } };
  const MARKED = "only while it pauses it";
  let uid: string;
  beforeAll(async () => {
    uid = await pausedPipe("forgotten");
    await own("forgotten", FORGET);
  });

  it("may be resumed if the annotation says that the controller paused it", async () => {
    const ended = commitOf(uid, { isCommitting: false });
    expect(await send("forgotten", { ...ended, ...RESUME })).toBe("accepted");
    expect(await send("forgotten", { ...ended, ...resumeAndResize(1) })).toBe("accepted");
  });

  it("may be resumed without its labels, too", async () => {
    const departedUid = await pausedPipe("forgotten-departed");
    await own("forgotten-departed", FORGET);
    await own("forgotten-departed", UNLABEL);
    const ended = commitOf(departedUid, { isCommitting: false });
    expect(await send("forgotten-departed", { ...ended, ...RESUME })).toBe("accepted");
  });

  it("may be resumed without the annotation after its owner applied it, if the pause came with a record", async () => {
    await createPipe("recorded");
    await own("recorded", FORGET);
    const metadata = { managedFields: [RECORD] };
    await write("recorded", { metadata, ...pauseAndResize });
    expect(await send("recorded", RESUME)).toBe("accepted");
    const body = { apiVersion: "apps/v1", kind: "Deployment", metadata: { labels: { team: "a" } } };
    await admin.json({ ...patch("recorded", body, "owner"), patchType: "application/apply-patch+yaml" });
    expect(await send("recorded", RESUME)).toBe("accepted");
    expect(await send("recorded", resumeAndResize(1))).toBe("accepted");
  });

  it("may not get such a record if its owner paused it", async () => {
    await createPipe("unrecorded");
    await own("unrecorded", PAUSE);
    await own("unrecorded", FORGET);
    const metadata = { managedFields: [RECORD] };
    expectDenied(await send("unrecorded", { metadata }), MANAGERS);
    expectDenied(await send("unrecorded", { metadata, ...resize(2) }), MANAGERS);
    expectDenied(await send("unrecorded", { metadata, ...RESUME }), OWN);
  });

  // The first apply of its owner would give another pause to a manager of the past.
  it("may be paused only with a record, whatever the annotation says", async () => {
    await createPipe("bare");
    await own("bare", FORGET);
    const { metadata } = commitOf(await uidOf("bare"));
    for (const annotation of [{}, commitOf(uid), { metadata }])
      expectDenied(await send("bare", { ...annotation, ...pauseAndResize }), "only in its own name");
    const recorded = { metadata: { ...metadata, managedFields: [RECORD] }, ...pauseAndResize };
    expect(await send("bare", recorded)).toBe("accepted");
  });

  it("may not lose that annotation while it stays paused", async () => {
    const none = { metadata: { annotations: { [LAST_ROLLOUT_ANNOTATION]: null } } };
    for (const annotation of [none, commitOf(uid, { isCommitting: false }), commitOf(await uidOf("only"))])
      expectDenied(await send("forgotten", annotation), "only in its own name");
    expect(await send("forgotten", commitOf(uid, { cameUp: true }))).toBe("accepted");
  });

  it("may not keep that annotation when it is resumed", async () => {
    expectDenied(await send("forgotten", RESUME), MARKED);
  });

  it("may not be resumed if its owner paused it, whatever the annotation says then", async () => {
    await createPipe("unknown");
    const unknownUid = await uidOf("unknown");
    await own("unknown", PAUSE);
    await own("unknown", FORGET);
    expectDenied(await send("unknown", RESUME), OWN);
    expectDenied(await send("unknown", commitOf(unknownUid)), MARKED);
    expectDenied(await send("unknown", { ...commitOf(unknownUid), ...resize(2) }), MARKED);
  });

  it("may not be resumed if its owner paused it, and its annotation has no mark, or is that of another Deployment", async () => {
    await createPipe("unmarked");
    const unmarked = commitOf(await uidOf("unmarked"), { isCommitting: false });
    await write("unmarked", unmarked);
    await own("unmarked", PAUSE);
    await own("unmarked", FORGET);
    expectDenied(await send("unmarked", RESUME), OWN);
    await own("unmarked", { ...commitOf(uid), ...PAUSE });
    await own("unmarked", FORGET);
    expectDenied(await send("unmarked", { ...unmarked, ...RESUME }), OWN);
  });

  it("may not be marked before its owner pauses it", async () => {
    expectDenied(await send("only", commitOf(await uidOf("only"))), MARKED);
    expectDenied(await send("only", { ...commitOf(await uidOf("only")), ...resize(2) }), MARKED);
  });
});

it("a Deployment may be resumed, but not paused, after resizes in place are forbidden", async () => {
  const uid = await pausedPipe("late");
  const without = "crds.enabled=false,rbac.inPlaceResize=false,controller.config.resizeStrategy=Rollout";
  await install(cluster, release, "--set", without);
  const isDenied = async () =>
    (await send("only", pauseAndResize)).includes("the controller may not pause a Deployment");
  await waitFor(isDenied, { what: "the pause to be denied" });
  const taken = commitOf(uid, { isCommitting: false, size: sizeOfCores(1) });
  expect(await send("late", RESUME)).toBe("accepted");
  expect(await send("late", { ...taken, ...resumeAndResize(1) })).toBe("accepted");
  const user = `system:serviceaccount:${release.namespace}:${release.name}-pipe-scaling-operator-controller`;
  for (const [verb, resource] of [
    ["patch", "pods/resize"],
    ["list", "replicasets"],
  ] as const) {
    const args = ["auth", "can-i", verb, resource, "-n", release.pipes, "--as", user];
    await expect(kubectl(cluster, args)).rejects.toThrow();
  }
});
