import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { ATTEMPT_ANNOTATION } from "../../src/controller/names.ts";
import { PIPE_SCALINGS } from "../../src/crd/names.ts";
import type { PipeScaling } from "../../src/crd/pipe-scaling.ts";
import { KubeClient } from "../../src/kube/client.ts";
import { connect } from "../../src/kube/connection.ts";
import type { Deployment, KubeObject } from "../../src/kube/objects.ts";
import {
  CONFIG_MAPS,
  collectionPath,
  DEPLOYMENTS,
  objectPath,
  type Resource,
  SECRETS,
} from "../../src/kube/paths.ts";
import { organizationConfigMapName } from "../../src/records/organization.ts";
import { type Cluster, startCluster } from "../cluster/cluster.ts";
import { apply, kubectl } from "../cluster/kubectl.ts";
import { waitFor } from "../cluster/wait.ts";
import { pipeScaling } from "../e2e/demo/processes.ts";
import { pipeDeployment } from "../gen/pipe.ts";
import { VERTICAL_CRD } from "../gen/vertical-autoscaler.ts";
import { accountOf, install, prepareRelease, type Release, settings } from "./accounts.ts";
import { AuditLog, right } from "./audit.ts";
import { UnpackedImage } from "./image.ts";
import { PodProcess } from "./pod-process.ts";
import { helm, rendered } from "./tools.ts";

const PIPES = ["a", "b", "c"] as const;
/** Long enough for a rollout to have a middle. */
const POD_START_MS = 1000;

const made = z.object({ id: z.guid() });
const madeKey = z.object({ keyId: z.string(), keySecret: z.string() });

/** A platform team's year with the chart, step by step: each step builds on those before it. */
describe("a release", { timeout: 120_000 }, () => {
  const { signal } = new AbortController();
  const audit = new AuditLog();
  let cluster: Cluster;
  let admin: KubeClient;
  let release: Release;
  let image: UnpackedImage;
  let running: PodProcess[] = [];
  let apiUrl: string;
  let key: z.output<typeof madeKey>;
  let organizationId: string;
  let serviceId: string;

  beforeAll(async () => {
    cluster = await startCluster({
      podStartMs: POD_START_MS,
      // Without lists as streams, which older versions have not: so the right to list is used too.
      apiServerArgs: { ...audit.apiServerArgs, "feature-gates": "WatchList=false" },
    });
    admin = new KubeClient(await connect(cluster.kubeconfig));
    await apply(cluster, [VERTICAL_CRD]);
    release = await prepareRelease(cluster);
    image = await UnpackedImage.build();
  });
  afterAll(async () => {
    await stopProcesses();
    await admin?.close();
    await cluster?.stop();
    image?.[Symbol.dispose]();
    audit[Symbol.dispose]();
  });

  async function stopProcesses(): Promise<void> {
    await Promise.all(running.splice(0).map((each) => each.stop()));
  }

  /** Those of the release as it is now, in the place of those before. */
  async function startProcesses(): Promise<void> {
    await stopProcesses();
    const api = await PodProcess.start(image, cluster, release, "api");
    running = [api];
    running.push(await PodProcess.start(image, cluster, release, "controller"));
    apiUrl = api.url;
  }

  /** @returns the status of the answer */
  async function ask(method: "PATCH" | "DELETE", path: string, body?: object): Promise<number> {
    const authorization = `Basic ${Buffer.from(`${key.keyId}:${key.keySecret}`).toString("base64")}`;
    const headers = { authorization, "content-type": "application/json" };
    const { status } = await fetch(apiUrl + path, {
      method,
      headers,
      body: body ? JSON.stringify(body) : null,
    });
    return status;
  }

  const serviceUrl = () => `/v1/organizations/${organizationId}/services/${serviceId}`;
  const askFor = (cores: number) =>
    ask("PATCH", `${serviceUrl()}/pipesCdcScaling`, { replicaCpuMillicores: cores * 1000 });
  const scaling = () =>
    admin.json<KubeObject & PipeScaling>({ path: objectPath(PIPE_SCALINGS, release.pipes, serviceId) });
  const setTier = (tier: string) =>
    admin.json({
      method: "PATCH",
      path: objectPath(CONFIG_MAPS, release.records, organizationConfigMapName(organizationId)),
      patchType: "application/merge-patch+json",
      body: { data: { tier } },
    });

  function readyFor(reason: string) {
    return waitFor(
      async () => {
        const { metadata, status } = await scaling();
        const ready = status?.conditions?.find(({ type }) => type === "Ready");
        return ready?.reason === reason && ready.observedGeneration === metadata.generation;
      },
      { what: `the service to be ${reason}`, timeoutMs: 60_000 },
    );
  }

  async function cpuOfPipes(): Promise<readonly unknown[]> {
    const pipes = PIPES.map((name) =>
      admin.json<Deployment>({ path: objectPath(DEPLOYMENTS, release.pipes, name) }),
    );
    return (await Promise.all(pipes)).map(
      ({ spec }) => spec.template.spec.containers[0]?.resources?.requests?.["cpu"],
    );
  }

  /** What tells whether anybody has touched the objects that a release must leave alone. */
  async function untouched(): Promise<unknown> {
    const identities = async (resource: Resource, namespace: string) => {
      const path = collectionPath(resource, namespace);
      const { items } = await admin.json<{ readonly items: readonly KubeObject[] }>({ path });
      return items.map(({ metadata }) => [metadata.name, metadata.uid, metadata.generation]);
    };
    return {
      pipes: await identities(DEPLOYMENTS, release.pipes),
      scalings: await identities(PIPE_SCALINGS, release.pipes),
      records: await identities(CONFIG_MAPS, release.records),
      keys: await identities(SECRETS, release.records),
    };
  }

  it("is installed, and its pods are what a restricted namespace takes", async () => {
    await install(cluster, release, "--set", "api.rateLimit=0", "--wait", "--timeout", "60s");
    await kubectl(cluster, ["wait", "--for=condition=Established", "crd/pipescalings.pipes.clouddb.dev"]);
  });

  it("resizes pipes by a call, with processes that run as their pods say", async () => {
    const command = (...args: string[]) =>
      pipeScaling(cluster, [...args, "--namespace", release.records], signal);
    organizationId = made.parse(
      await command("organization", "create", "--name", "Acme", "--tier", "basic"),
    ).id;
    const ofAcme = ["--organization", organizationId];
    const service = ["service", "create", ...ofAcme, "--name", "orders", "--pipes-namespace", release.pipes];
    serviceId = made.parse(await command(...service)).id;
    key = madeKey.parse(await command("key", "create", ...ofAcme, "--name", "ci", "--role", "admin"));
    for (const user of ["ada", "bob"]) {
      const person = ["--user-id", user, "--name", user, "--email", `${user}@example.com`];
      await command("member", "add", ...ofAcme, ...person, "--role", "admin");
    }
    await startProcesses();
    await apply(
      cluster,
      PIPES.map((name) => pipeDeployment({ name, namespace: release.pipes, serviceId, cores: 1 })),
    );
    await waitFor(scaling, { what: "the controller to make the PipeScaling" });
    await readyFor("Scaled");
    expect(await askFor(2)).toBe(200);
    await readyFor("Scaled");
    expect(await cpuOfPipes()).toEqual(["2", "2", "2"]);

    // What follows needs rights that this has not.
    const members = `/v1/organizations/${organizationId}/members`;
    expect(await ask("DELETE", `${members}/ada`)).toBe(200);
    expect(await ask("DELETE", `${members}/bob`)).toBe(400);
    for (const hours of [48, 24]) {
      expect(await ask("PATCH", `${serviceUrl()}/backupConfiguration`, { backupPeriodInHours: hours })).toBe(
        200,
      );
    }
    await suspend(true);
    await waitFor(async () => (await askFor(3)) === 409, {
      what: "the API to see that the service is suspended",
    });
    await suspend(false);
    await readyFor("Scaled");
    for (const tier of ["unheard-of", "basic", "unheard-of", "basic"]) {
      await setTier(tier);
      await readyFor(tier === "basic" ? "Scaled" : "UnknownTier");
    }
    await events(2);
    await confirmedGeneration();
    await stopProcesses();
    await startProcesses();
  });

  it("passes its own test", async () => {
    const [pod] = z
      .array(testPod)
      .parse(await rendered(...settings(release), "--show-only", "templates/tests/api.yaml"));
    const [container] = pod?.spec.containers ?? [];
    const { command, args = [] } = container ?? {};
    const child = image.start({ command, args: [...args.slice(0, -1), apiUrl] }, {});
    const [out, err] = [child.stdout, child.stderr].map((stream) => stream && text(stream));
    expect(await out).toBe("GET /openapi.json: 200\nGET /v1/organizations: 401\n");
    expect(await err).toBe("");
  });

  const suspend = (suspended: boolean) =>
    admin.json({
      method: "PATCH",
      path: objectPath(PIPE_SCALINGS, release.pipes, serviceId),
      patchType: "application/merge-patch+json",
      body: { spec: { suspend: suspended } },
    });

  /** Makes a pipe tell of a later PipeScaling, as after etcd was put back, and waits until that is put right. */
  async function confirmedGeneration(): Promise<void> {
    const path = objectPath(DEPLOYMENTS, release.pipes, "a");
    const attempt = async () => {
      const { metadata } = await admin.json<Deployment>({ path });
      return JSON.parse(metadata.annotations?.[ATTEMPT_ANNOTATION] ?? "{}");
    };
    const annotations = {
      [ATTEMPT_ANNOTATION]: JSON.stringify({ ...(await attempt()), generation: 1_000_000 }),
    };
    const patchType = "application/merge-patch+json";
    await admin.json({ method: "PATCH", path, patchType, body: { metadata: { annotations } } });
    await waitFor(async () => (await attempt()).generation !== 1_000_000, {
      what: "the generation to be confirmed",
    });
  }

  /** Until the Event about the tier has been told that often. */
  function events(count: number) {
    return waitFor(
      async () => {
        const path = collectionPath({ apiVersion: "events.k8s.io/v1", plural: "events" }, release.pipes);
        const { items } = await admin.json<{
          readonly items: readonly { reason: string; series?: { count: number } }[];
        }>({ path });
        return items.some(({ reason, series }) => reason === "UnknownTier" && series?.count === count);
      },
      { what: `an Event to be told ${count} times` },
    );
  }

  it.each(["api", "controller"] as const)("gives the %s just the rights that it uses", async (component) => {
    const account = accountOf(release, component);
    const calls = audit.callsOf(release.namespace, account);
    expect(calls.filter(({ isAllowed }) => !isAllowed)).toEqual([]);
    const used = new Set(calls.map((call) => `${call.right} in ${call.namespace}`));
    expect([...(await grantedTo(account))].filter((each) => !used.has(each))).toEqual([]);
  });

  /** Each right of each rule, by the Roles that are bound to an account. */
  async function grantedTo(account: string): Promise<ReadonlySet<string>> {
    const roles = JSON.parse(
      await kubectl(cluster, ["get", "roles", "--all-namespaces", "-o", "json"]),
    ).items;
    const own = z
      .array(role)
      .parse(roles)
      .filter(({ metadata }) => metadata.name.startsWith(account));
    expect(own).toHaveLength(2);
    return new Set(
      own.flatMap(({ metadata, rules }) =>
        rules.flatMap(({ apiGroups: [group = ""], resources, verbs }) =>
          resources.flatMap((resource) =>
            verbs.map((verb) => `${right(verb, group, resource)} in ${metadata.namespace}`),
          ),
        ),
      ),
    );
  }

  it("takes an upgrade with other tiers in the middle of a rollout", async () => {
    expect(await askFor(8)).toBe(200);
    await waitFor(async () => (await scaling()).status?.pipes?.summary === "1/3", {
      what: "the middle of the rollout",
    });
    await install(cluster, release, "--set", "api.rateLimit=0,tiers.basic.maximumCpuMillicores=4000");
    await startProcesses();
    await readyFor("TierLimited");
    expect(await cpuOfPipes()).toEqual(["4", "4", "4"]);
    expect(await askFor(8)).toBe(400);
  });

  it("stands beside another one of its name in another namespace", async () => {
    const other = { ...(await prepareRelease(cluster)), name: release.name };
    await install(cluster, other, "--set", "crds.enabled=false");
    await helm(["uninstall", other.name, "--namespace", other.namespace], cluster);
  });

  it("leaves pipes, sizes, records and keys untouched when it is uninstalled, and takes them up again", async () => {
    const before = await untouched();
    await stopProcesses();
    await helm(["uninstall", release.name, "--namespace", release.namespace, "--wait"], cluster);
    expect(await untouched()).toEqual(before);
    const rights = await kubectl(cluster, [
      "get",
      "roles,clusterroles,validatingadmissionpolicies",
      "-A",
      "-o",
      "name",
    ]);
    expect(rights).not.toContain(release.name);
    await install(cluster, release);
    expect(await untouched()).toEqual(before);
  });
});

const testPod = z.object({
  spec: z.object({
    containers: z.array(z.object({ command: z.array(z.string()), args: z.array(z.string()) })),
  }),
});

const role = z.object({
  metadata: z.object({ name: z.string(), namespace: z.string() }),
  rules: z.array(
    z.object({ apiGroups: z.array(z.string()), resources: z.array(z.string()), verbs: z.array(z.string()) }),
  ),
});
