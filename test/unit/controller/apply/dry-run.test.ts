import { describe, expect, it } from "vitest";
import { type NodeView, toNodeView } from "../../../../src/capacity/node-view.ts";
import { dryRun } from "../../../../src/controller/apply/checks.ts";
import type { PodView } from "../../../../src/controller/observe/pod-view.ts";
import { toPipeView } from "../../../../src/controller/observe/workloads/deployment.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../../../src/crd/names.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import type { KubeRequest } from "../../../../src/kube/client.ts";
import { KubeApiError, KubeUnreachableError } from "../../../../src/kube/errors.ts";
import type { ManagedFields } from "../../../../src/kube/objects.ts";
import type { Deployment } from "../../../../src/kube/workloads.ts";
import { aCommitter, aDeployment } from "../../../support/fixtures/committing.ts";
import { aPod } from "../../../support/fixtures/pod.ts";
import { aRollout } from "../../../support/fixtures/snapshot.ts";

const FOUR = sizeOfCores(4);
const error = (code: number, message: string) => new KubeApiError("PATCH", code, JSON.stringify({ message }));
const DENIED = 'admission webhook "pipes.example.com" denied the request: too many';

interface Tried {
  readonly isCommit: boolean;
  readonly checksNodes?: boolean;
  readonly triedPod?: PodView | undefined;
}

/** The result of a dry run of four cores. @param respond responds to the write @param deployment as it is read */
async function tried(
  { isCommit, checksNodes = false, triedPod }: Tried,
  respond?: (request: KubeRequest) => unknown,
  nodes: readonly NodeView[] = [],
  deployment: Deployment = aDeployment(),
) {
  const pipe = toPipeView(aDeployment());
  const made = aCommitter({ deployment, ...(respond ? { write: respond } : {}) });
  const applier = { ...made.applier, nodes: { list: () => Promise.resolve(nodes) } };
  made.caches.pipes.of(pipe.kind).apply(pipe);
  const action = {
    type: "dry-run",
    pipe,
    container: "pipe",
    rollout: aRollout(FOUR),
    subject: "subject",
  } as const;
  const thrown = await dryRun(applier, { ...action, isCommit, checksNodes, triedPod }).catch(
    (each: unknown) => each,
  );
  const purpose = isCommit ? "dry-run-commit" : "dry-run";
  return { ...made, thrown, record: made.applier.writes.get("uid-a", purpose) };
}

/** The Deployment that a webhook or the API server makes of the paused one. */
function committed(
  changes: { readonly managedFields?: readonly ManagedFields[]; readonly image?: string } = {},
) {
  const { metadata, spec, ...rest } = aDeployment({ cores: 4, isPaused: true });
  const containers = spec.template.spec.containers.map((each) => ({
    ...each,
    ...(changes.image ? { image: changes.image } : {}),
  }));
  return {
    ...rest,
    metadata: { ...metadata, managedFields: changes.managedFields ?? metadata.managedFields },
    spec: { ...spec, template: { ...spec.template, spec: { ...spec.template.spec, containers } } },
  };
}

function withSidecar(deployment: Deployment, cpu: string): Deployment {
  const { template, ...spec } = deployment.spec;
  const containers = [...template.spec.containers, { name: "sidecar", resources: { requests: { cpu } } }];
  return {
    ...deployment,
    spec: { ...spec, template: { ...template, spec: { ...template.spec, containers } } },
  };
}

describe("the dry run of a rollout", () => {
  it("changes nothing, and is remembered for what it depends on", async () => {
    const { writes, record } = await tried({ isCommit: false });
    expect(writes()).toMatchObject([{ method: "PATCH", query: { dryRun: "All" } }]);
    expect(record).toMatchObject({ subject: "subject", outcome: { type: "done" } });
  });

  it.each<[string, KubeApiError]>([
    ["a webhook responds with 429", error(429, DENIED)],
    ["a webhook does not support dry runs", error(400, 'webhook "w" does not support dry run')],
    ["a webhook is down", error(500, "failed calling webhook")],
  ])("predicts nothing if %s, so that the resize shows the outcome", async (_, each) => {
    const { record } = await tried({ isCommit: false }, () => {
      throw each;
    });
    expect(record?.outcome.type).toBe("done");
  });

  it.each<[string, Error]>([
    ["a webhook does not support dry runs", error(400, 'webhook "w" does not support dry run')],
    ["a webhook is down", error(500, "failed calling webhook")],
    ["there is no response", new KubeUnreachableError("timeout")],
  ])("is a refusal if a quota refuses the size for a pod, although %s", async (_, each) => {
    const quota = error(403, 'pods "a-1" is forbidden: exceeded quota: small');
    const respond = ({ path }: KubeRequest) => {
      throw path.endsWith("/pods/a-1/resize") ? quota : each;
    };
    const outcome = async (triedPod?: PodView) =>
      (await tried({ isCommit: false, triedPod }, respond)).record?.outcome;
    expect(await outcome(aPod("a-1"))).toMatchObject({ type: "failed", error: { reason: "Refused" } });
    expect((await outcome())?.type).toBe("done");
  });

  it.each<[string, KubeApiError, string]>([
    ["a webhook responds with 409", error(409, DENIED), DENIED],
    ["the values are invalid", error(422, "too large"), "too large"],
  ])("is a refusal if %s", async (_, each, message) => {
    const { record } = await tried({ isCommit: false }, () => {
      throw each;
    });
    expect(record?.outcome).toMatchObject({ type: "failed", error: { reason: "Refused", message } });
  });

  it("is repeated later if the API server is busy", async () => {
    const busy = new KubeApiError("PATCH", 429, "{}", { retryAfterHeader: "7" });
    const { record } = await tried({ isCommit: false }, () => {
      throw busy;
    });
    expect(record?.outcome).toMatchObject({ error: { reason: "WriteFailed", retryAfterMs: 7000 } });
  });

  it("finds out whether a node is large enough, if that is asked for", async () => {
    const small = toNodeView({
      metadata: { name: "n", namespace: "", uid: "n", resourceVersion: "1" },
      spec: {},
      status: { allocatable: { cpu: "2", memory: "8Gi" } },
    });
    expect((await tried({ isCommit: false }, () => committed(), [small])).record?.outcome.type).toBe("done");
    const { record } = await tried({ isCommit: false, checksNodes: true }, () => committed(), [small]);
    expect(record?.outcome).toMatchObject({ error: { reason: "NoNodeLargeEnough" } });
  });
});

describe("the dry run of a commit", () => {
  it("is accepted if only the size changes, and the pause is recognizable", async () => {
    const { writes, record } = await tried({ isCommit: true }, () => committed());
    expect(writes()).toMatchObject([{ query: { dryRun: "All" }, body: { spec: { paused: true } } }]);
    expect(record?.outcome.type).toBe("done");
  });

  it("names the controller in managedFields if they were reset, as the commit itself", async () => {
    const { writes } = await tried({ isCommit: true }, () => committed());
    const managedFields = [{ manager: CONTROLLER_FIELD_MANAGER, fieldsV1: { "f:spec": { "f:paused": {} } } }];
    expect(writes()).toMatchObject([{ body: { metadata: { managedFields } } }]);
  });

  it.each<[string, () => object, string]>([
    ["something removes managedFields", () => committed({ managedFields: [] }), "NotSupported"],
    ["a webhook changes the template", () => committed({ image: "pipe:2" }), "TemplateChanged"],
  ])("leads to a rollout if %s", async (_, response, fallback) => {
    const { record } = await tried({ isCommit: true }, response);
    expect(record?.outcome).toMatchObject({ type: "failed", error: { fallback } });
  });

  it("leads to a rollout if a webhook changes the CPU of another container", async () => {
    const outcome = async (cpu: string) => {
      const respond = () => withSidecar(committed(), cpu);
      return (await tried({ isCommit: true }, respond, [], withSidecar(aDeployment(), "1"))).record?.outcome;
    };
    expect((await outcome("1"))?.type).toBe("done");
    expect(await outcome("2")).toMatchObject({ error: { fallback: "TemplateChanged" } });
  });

  it.each<[number, string, string]>([
    [422, "a policy says no", "Refused"],
    [403, 'is forbidden: User "controller" cannot patch', "Forbidden"],
  ])("leads to a rollout after %i %s", async (code, message, fallback) => {
    const { record } = await tried({ isCommit: true }, () => {
      throw error(code, message);
    });
    expect(record?.outcome).toMatchObject({ error: { reason: fallback, message, fallback } });
  });

  it.each<[string, Error]>([
    ["an error of the server", error(500, "failed calling webhook")],
    ["no response", new KubeUnreachableError("timeout")],
  ])("is repeated after %s, and never leads to a rollout", async (_, each) => {
    const { record } = await tried({ isCommit: true }, () => {
      throw each;
    });
    expect(record?.outcome).toMatchObject({ type: "failed", error: { reason: "WriteFailed" } });
    expect(record?.outcome.type === "failed" && record.outcome.error.fallback).toBeUndefined();
  });
});

it("a dry run leaves no record if the Deployment is deleted meanwhile", async () => {
  const pipe = toPipeView(aDeployment());
  const { applier, record, caches } = await tried({ isCommit: false }, () => {
    throw error(422, "no");
  });
  expect(record).toBeDefined();
  caches.pipes.of(pipe.kind).remove({ ...pipe, metadata: { ...pipe.metadata, resourceVersion: "99" } });
  expect(applier.writes.get("uid-a", "dry-run")).toBeUndefined();
});
