import { apply, kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, describe, expect, it } from "vitest";
import { LAST_ROLLOUT_ANNOTATION, RETRY_ANNOTATION } from "../../../src/controller/names.ts";
import type { Timeouts } from "../../../src/controller/timeouts.ts";
import type { KubeRequest } from "../../../src/kube/client.ts";
import { collectionPath, DEPLOYMENTS, objectPath, PODS } from "../../../src/kube/paths.ts";
import { accountName } from "../../support/fixtures/shipped-account.ts";
import { setQuota } from "../../support/limits.ts";
import { mutatingPolicy } from "../../support/mutating-policy.ts";
import { AdmissionWebhook, allow, removeAnnotation } from "../../support/servers/admission-webhook.ts";
import { errorResponse } from "./faulty-proxy.ts";
import { type HeldService, HeldServices, PIPE } from "./held-services.ts";

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** One service. */
async function start(options: Parameters<typeof HeldServices.start>[0] = {}): Promise<{
  readonly held: HeldServices;
  readonly service: HeldService;
}> {
  const held = await HeldServices.start({ steps: ["pause"], ...options });
  ends.push(() => held.end());
  const [service] = held.services;
  if (!service) throw new Error("there is no service");
  return { held, service };
}

/** Nothing was replaced, so there is no fallback to report. */
async function expectNoFallback({ environment }: HeldService): Promise<void> {
  expect(await environment.scrape()).not.toMatch(/^pipe_scaling_in_place_fallbacks_total\{.*\} [1-9]/m);
  expect((await environment.scaling()).status?.pipes).not.toHaveProperty("fallbacks");
}

async function isReplaced(service: HeldService): Promise<boolean> {
  return (await service.uids()).every((uid) => !service.before.includes(uid));
}

describe("a resize in place", () => {
  it.each<[string, Partial<Timeouts>]>([
    ["a retry is requested", {}],
    ["the next attempt is due", { rolloutRetry: { firstMs: 6000, mostMs: 6000 } }],
  ])(
    "returns the first pod to its old size if a quota rejects the second one, restarts nothing, and goes on when %s",
    async (_, timeouts) => {
      const { service } = await start({ timeouts });
      const { environment } = service;
      await setQuota(environment, { "requests.cpu": "3" });
      await environment.requestSize(2);
      // The quota would also reject a rollout.
      const { status } = await environment.waitForCondition("Stalled", "True", "Refused");
      expect(status?.failures).toMatchObject([
        { pipe: PIPE, attempts: 1, message: expect.stringContaining("exceeded quota: small") },
      ]);
      expect(status?.failures?.[0]?.nextRetryAt).toBeDefined();
      await expectOldPods(service);
      await setQuota(environment, { "requests.cpu": "20" });
      if (!timeouts.rolloutRetry)
        await environment.patchScaling(undefined, { [RETRY_ANNOTATION]: new Date().toISOString() });
      await service.settled(2);
      await service.expectNoRestart();
      await expectNoFallback(service);
    },
  );

  it("continues without a restart if an API server that has just started denies a write", async () => {
    const { held, service } = await start();
    const denial =
      'replicasets.apps "pipe" is forbidden: User "controller" cannot patch resource "replicasets"';
    let writes = 0;
    held.handle(({ verb, resource }) => {
      if (verb !== "patch" || resource !== "replicasets") return undefined;
      writes += 1;
      if (writes === 1) return { type: "drop" };
      return writes === 2 ? errorResponse(403, "Forbidden", {}, denial) : undefined;
    });
    await service.environment.requestSize(4);
    await service.settled(4);
    expect(writes).toBe(3);
    await service.expectNoRestart();
  });

  it("does not begin if a policy changes the pod template at each write", async () => {
    const { service } = await start();
    const { environment } = service;
    await stampWhere(
      service,
      `request.dryRun || request.userInfo.username.contains("${accountName("controller")}")`,
    );
    await environment.requestSize(2);
    // The admission policies of the chart reject the changed template, also in a rollout.
    const { status } = await environment.waitForCondition("Ready", "False", "Refused");
    expectToldAboutWebhook(status?.failures?.[0]?.message);
    await expectNoFallback(service);
    await expectOldPods(service);
  });

  it("leads to a rollout if the same happens without the admission policies of the chart", async () => {
    const { service } = await start({ isRestricted: false });
    await stampWhere(service, "request.dryRun");
    await service.environment.requestSize(2);
    await waitFor(() => isReplaced(service), { what: "the pods to be replaced" });
    await service.settled(2);
    await service.expectFallback("TemplateChanged");
  });

  it.each([
    ["goes on", (held: HeldServices) => held.release()],
    ["crashes, and the next one goes on", (held: HeldServices) => held.crash()],
  ])(
    "leaves no Deployment paused if field managers were reset and a webhook removes the annotation, when the controller %s",
    async (_, goOn) => {
      const { held, service } = await start({ steps: ["write to the ReplicaSet"] });
      const { environment } = service;
      await environment.patchPipe(PIPE, { metadata: { managedFields: [{}] } });
      const webhook = await AdmissionWebhook.start(environment, "MutatingWebhookConfiguration", PIPE);
      ends.push(() => webhook.end());
      webhook.respond = removeAnnotation;
      await held.hold(2);
      const { metadata, spec } = await service.pipe();
      expect(spec.paused).toBe(true);
      expect(metadata.annotations).not.toHaveProperty([LAST_ROLLOUT_ANNOTATION]);
      await goOn(held);
      const isResumed = async () => (await service.pipe()).spec.paused === undefined;
      await waitFor(isResumed, { what: "the Deployment to be resumed" });
      webhook.respond = allow;
      await environment.patchScaling(undefined, { [RETRY_ANNOTATION]: new Date().toISOString() });
      await service.settled(2);
      await service.expectNoRestart();
    },
  );

  it("keeps the pods as they are while a webhook changes the pod template during the commit, and commits when a retry is requested", async () => {
    const { held, service } = await start();
    const { environment } = service;
    await held.hold(2);
    const webhook = await stampAtEachWrite(service);
    held.release();
    // The admission policies of the chart reject the changed template, in every write to the Deployment.
    const { status } = await environment.waitForCondition("Ready", "False", "Refused");
    expect(status?.failures).toMatchObject([{ pipe: PIPE, nextRetryAt: expect.any(String) }]);
    expectToldAboutWebhook(status?.failures?.[0]?.message);
    await expectNoFallback(service);
    expect(await service.uids()).toEqual(service.before);
    expect((await service.pipe()).spec.paused).toBeUndefined();
    webhook.respond = () => ({ allowed: true });
    await environment.patchScaling(undefined, { [RETRY_ANNOTATION]: new Date().toISOString() });
    await service.settled(2);
    await service.expectNoRestart();
  });

  it("leads to a rollout if a policy undoes the resize of each pod", async () => {
    const { service } = await start();
    const { name, namespace = "" } = (await service.aPod()).metadata;
    const containers = [{ name: "pipe", resources: { requests: { cpu: "7" } } }];
    await mutate(service, {
      group: "",
      resource: "pods/resize",
      operation: "UPDATE",
      expression: withCpu("1"),
      dryRun: {
        method: "PATCH",
        ...STRATEGIC,
        path: `${objectPath(PODS, namespace, name)}/resize`,
        body: { spec: { containers } },
      },
      isApplied: (text) => !text.includes('"cpu":"7"'),
    });
    await service.environment.requestSize(2);
    await waitFor(() => isReplaced(service), { what: "the pods to be replaced" });
    await service.settled(2);
  });

  it("gives the size to pods that a policy created with another one", async () => {
    const { service } = await start();
    const { pipes } = service.environment;
    const containers = [{ name: "pipe", image: "registry.example/pipe:1" }];
    await mutate(service, {
      group: "",
      resource: "pods",
      operation: "CREATE",
      expression: withCpu("3"),
      dryRun: {
        method: "POST",
        path: collectionPath(PODS, pipes),
        body: { metadata: { name: "dry-run" }, spec: { containers } },
      },
      isApplied: (text) => text.includes('"cpu":"3"'),
    });
    await service.change({ replicas: 3 });
    await waitFor(async () => (await sizesOf(service)).includes("3"), { what: "a pod of another size" });
    await service.environment.requestSize(2);
    await service.settled(2, 3);
    expect(await service.uids()).toEqual(expect.arrayContaining([...service.before]));
    expect(await service.replicaSets()).toHaveLength(1);
  });

  it("keeps an empty ReplicaSet of the size that is newer than the current one", async () => {
    const { service } = await start();
    const { environment } = service;
    const [first] = await service.replicaSets();
    const createdAt = Date.parse(first?.metadata.creationTimestamp ?? "");
    await waitFor(() => Date.now() >= createdAt + 2000, { what: "the ReplicaSet to be older than a second" });
    await environment.patchScaling({ strategy: "Rollout" });
    for (const cores of [2, 1]) {
      await environment.requestSize(cores);
      await service.settled(cores);
    }
    const before = await service.uids();
    const names = (await service.replicaSets()).map(({ metadata }) => metadata.name);
    expect(names).toHaveLength(2);
    await environment.patchScaling({ strategy: "InPlaceOrRollout" });
    await environment.requestSize(2);
    await service.settled(2);
    expect(await service.uids()).toEqual(before);
    expect((await service.replicaSets()).map(({ metadata }) => metadata.name)).toEqual(names);
  });
});

/** Expects that the message names the cause and the remedy before the denial of the chart's policy. */
function expectToldAboutWebhook(message: string | undefined): void {
  expect(message).toMatch(
    /^something, probably a mutating admission webhook, changes more than the size in each write of the controller, .*exempt its service account.*denied request: the controller may change only the size/,
  );
}

/** Expects the original pods, with their size. */
async function expectOldPods(service: HeldService): Promise<void> {
  await waitFor(async () => (await sizesOf(service)).join() === "1,1", { what: "pods of one core" });
  expect(await service.uids()).toEqual(service.before);
  expect((await service.pipe()).spec.paused).toBeUndefined();
}

async function sizesOf(service: HeldService): Promise<readonly (string | undefined)[]> {
  return (await service.pods()).map(
    ({ status }) => status?.containerStatuses?.[0]?.resources?.requests?.["cpu"],
  );
}

/** @param condition selects writes to the Deployment, in CEL; dry runs among them */
function stampWhere(service: HeldService, condition: string): Promise<void> {
  const stamp = `{"stamp": string(object.metadata.generation)}`;
  return mutate(service, {
    group: "apps",
    resource: "deployments",
    operation: "UPDATE",
    condition: condition,
    expression: `Object{spec: Object.spec{template: Object.spec.template{
      metadata: Object.spec.template.metadata{annotations: ${stamp}}}}}`,
    dryRun: {
      method: "PATCH",
      ...STRATEGIC,
      path: objectPath(DEPLOYMENTS, service.environment.pipes, PIPE),
      body: { metadata: { annotations: { "example.com/dry-run": "true" } } },
    },
    isApplied: (text) => text.includes('"stamp"'),
  });
}

async function stampAtEachWrite({ environment }: HeldService): Promise<AdmissionWebhook> {
  const webhook = await AdmissionWebhook.start(environment, "MutatingWebhookConfiguration", PIPE);
  ends.push(() => webhook.end());
  let writes = 0;
  webhook.respond = () => {
    writes += 1;
    const path = "/spec/template/metadata/annotations";
    return { allowed: true, patch: [{ op: "add", path, value: { stamp: `${writes}` } }] };
  };
  return webhook;
}

const STRATEGIC = { patchType: "application/strategic-merge-patch+json" } as const;

interface Mutation {
  readonly group: "" | "apps";
  readonly resource: string;
  readonly operation: "CREATE" | "UPDATE";
  /** Fields to apply, in CEL. */
  readonly expression: string;
  readonly condition?: string;
  /** A write that shows if the policy is already in effect. */
  readonly dryRun: Pick<KubeRequest, "method" | "path" | "body" | "patchType">;
  readonly isApplied: (response: string) => boolean;
}

/** Changes objects of the service when they are written. */
async function mutate(
  { environment }: HeldService,
  { group, resource, operation, expression, condition = "true", dryRun, isApplied }: Mutation,
): Promise<void> {
  const { client, cluster, pipes } = environment;
  const mutation = { patchType: "ApplyConfiguration", applyConfiguration: { expression } };
  const requests = { name: pipes, namespace: pipes, group, resource, operation, condition, mutation };
  await apply(cluster, mutatingPolicy(requests));
  const request = { ...dryRun, query: { dryRun: "All" } };
  const isKnown = async () => isApplied(JSON.stringify(await client.json(request)));
  await waitFor(isKnown, { what: "the API server to apply the policy" });
  ends.push(() =>
    kubectl(cluster, ["delete", "mutatingadmissionpolicy,mutatingadmissionpolicybinding", pipes]),
  );
}

function withCpu(cpu: string): string {
  const resources = `Object.spec.containers.resources{requests: {"cpu": "${cpu}"}}`;
  return `Object{spec: Object.spec{containers: [Object.spec.containers{name: "pipe", resources: ${resources}}]}}`;
}
