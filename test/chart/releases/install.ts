import { text } from "node:stream/consumers";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { helm } from "@pipe-scaling/local-cluster/helm";
import { apply, kubectl, untilEstablished } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { GROUP, PIPE_SCALINGS, PLURAL } from "../../../src/crd/names.ts";
import type { KubeClient } from "../../../src/kube/client.ts";
import { isCode } from "../../../src/kube/errors.ts";
import type { KubeObject, Lease } from "../../../src/kube/objects.ts";
import {
  CONFIG_MAPS,
  collectionPath,
  DEPLOYMENTS,
  LEASES,
  objectPath,
  type Resource,
  SECRETS,
} from "../../../src/kube/paths.ts";
import { shippedAccount } from "../../support/fixtures/shipped-account.ts";
import { VERTICAL_CRD } from "../../support/fixtures/vertical-autoscaler.ts";
import { PatientClient } from "../../support/patient-client.ts";
import { accountOf, install, prepareRelease, type Release, settings } from "../accounts.ts";
import type { AuditedCall } from "../audit.ts";
import { UnpackedImage } from "../image.ts";
import { OperatedRelease, type Service } from "../operated-release.ts";
import { mayDo, namesOfRights, type Role } from "../rights.ts";
import { rendered } from "../tools.ts";
import type { ReleaseCluster } from "./cluster.ts";

/** For tests, which send requests faster than users. */
const QUICK = ["--set", "api.config.rateLimit=0,api.config.drainDelay=0s"] as const;

const COMPONENTS = ["api", "controller"] as const;

const READING = ["get", "list", "watch"];
const WRITING = ["create", "update", "patch", "delete", "deletecollection"];

/** The life of a release. Each test builds on those before it. */
export function installSuite(chart: ReleaseCluster): void {
  describe("a release", { timeout: 120_000 }, () => {
    let cluster: Cluster;
    let admin: KubeClient;
    let image: UnpackedImage;
    let release: Release;
    let operated: OperatedRelease;
    let service: Service;
    let other: OperatedRelease | undefined;

    beforeAll(async () => {
      cluster = chart.cluster;
      admin = await PatientClient.of(cluster);
      await apply(cluster, [VERTICAL_CRD]);
      image = await UnpackedImage.build();
      release = await prepareRelease(cluster);
      operated = new OperatedRelease(cluster, admin, image, release);
    });
    afterAll(async () => {
      await operated?.stop();
      await other?.stop();
      await admin?.close();
      image?.[Symbol.dispose]();
    });

    /** Returns the calls of the processes of a release. None may have been denied. */
    function callsOf(of: Release): readonly AuditedCall[] {
      const accounts = COMPONENTS.map((component) => accountOf(of, component));
      const calls = accounts.flatMap((account) => chart.audit.callsOf(of.namespace, account));
      expect(calls.filter(({ isAllowed }) => !isAllowed)).toEqual([]);
      return calls;
    }

    /** Returns a fingerprint of the objects that a release must not change. */
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

    it("installs, and a restricted namespace accepts its pods", async () => {
      await install(cluster, release, ...QUICK, "--wait", "--timeout", "60s");
      await untilEstablished(cluster, ["pipescalings.pipes.clouddb.dev"]);
    });

    it("resizes pipes after a request, with processes that run as in their pods", async () => {
      service = await operated.addService();
      await operated.start();
      await operated.addPipes(service);
      await waitFor(() => operated.scaling(service), { what: "the controller to create the PipeScaling" });
      await operated.readyFor("Scaled", service);
      expect(await operated.requestSize(2, service)).toBe(200);
      await operated.readyFor("Scaled", service);
      expect(await operated.cpuOfPipes(service)).toEqual(["2", "2", "2"]);
    });

    it("passes its own test", async () => {
      const [pod] = z
        .array(testPod)
        .parse(await rendered(...settings(release), "--show-only", "templates/tests/api.yaml"));
      const [container] = pod?.spec.containers ?? [];
      const { command, args = [] } = container ?? {};
      const child = image.start({ command, args: [...args.slice(0, -1), operated.url] }, {});
      const [out, err] = [child.stdout, child.stderr].map((stream) => stream && text(stream));
      expect(await out).toBe("GET /openapi.json: 200\nGET /v1/organizations: 401\n");
      expect(await err).toBe("");
    });

    // rights.test.ts removes each of them.
    it.each(COMPONENTS)(
      "gives the %s the same permissions in listed namespaces as in all",
      async (component) => {
        const label = `app.kubernetes.io/component=${component}`;
        const { items } = JSON.parse(
          await kubectl(cluster, ["get", "roles,clusterroles", "-A", "-l", label, "-o", "json"]),
        );
        expect(namesOfRights(items)).toEqual(
          namesOfRights(shippedAccount(component, "records").filter(isRole)),
        );
      },
    );

    it.each([
      ["view", READING],
      ["edit", [...READING, ...WRITING]],
      ["admin", [...READING, ...WRITING]],
    ])("allows users with the role %s exactly its verbs on PipeScalings", async (role, verbs) => {
      const { apiGroup, user } = { apiGroup: "rbac.authorization.k8s.io", user: `who-has-${role}` };
      await apply(cluster, [
        {
          apiVersion: `${apiGroup}/v1`,
          kind: "RoleBinding",
          metadata: { name: user, namespace: release.pipes },
          roleRef: { apiGroup, kind: "ClusterRole", name: role },
          subjects: [{ apiGroup, kind: "User", name: user }],
        },
      ]);
      const may = (verb: string) =>
        mayDo(admin, user, release.pipes, { verb, group: GROUP, resource: PLURAL });
      for (const verb of verbs) await waitFor(() => may(verb), { what: `${role} to allow ${verb}` });
      const others = WRITING.filter((verb) => !verbs.includes(verb));
      for (const verb of others) expect([verb, await may(verb)]).toEqual([verb, false]);
    });

    it("survives an upgrade with other tiers in the middle of a rollout", async () => {
      expect(await operated.requestSize(8, service)).toBe(200);
      await waitFor(async () => (await operated.scaling(service)).status?.pipes?.summary === "1/3", {
        what: "the middle of the rollout",
      });
      await install(cluster, release, ...QUICK, "--set", "tiers.basic.maximumCpuMillicores=4000");
      await operated.start();
      await operated.readyFor("TierLimited", service);
      expect(await operated.cpuOfPipes(service)).toEqual(["4", "4", "4"]);
      expect(await operated.requestSize(8, service)).toBe(400);
    });

    it("coexists with another release of the same name, each in its own namespaces", async () => {
      const beside = { ...(await prepareRelease(cluster)), name: release.name };
      await install(cluster, beside, ...QUICK, "--set", "crds.enabled=false");
      other = new OperatedRelease(cluster, admin, image, beside);
      const its = await other.addService();
      // This service's record names the namespace of the other release's pipes.
      const unmanaged = await operated.addService(beside.pipes);
      await other.start();
      await other.addPipes(unmanaged);
      await other.addPipes(its);
      await waitFor(() => other?.scaling(its), { what: "the other controller to create its PipeScaling" });
      expect(await other.requestSize(2, its)).toBe(200);
      expect(await operated.requestSize(3, service)).toBe(200);
      await other.readyFor("Scaled", its);
      await operated.readyFor("Scaled", service);
      expect(await other.cpuOfPipes(its)).toEqual(["2", "2", "2"]);
      expect(await operated.cpuOfPipes(service)).toEqual(["3", "3", "3"]);
      expect(await operated.cpuOfPipes(unmanaged)).toEqual(["1", "1", "1"]);
      await expect(operated.scaling(unmanaged)).rejects.toSatisfy((error) => isCode(error, 404));

      const { authorization } = service;
      expect(await other.requestSize(4, service)).toBe(401);
      expect(await operated.requestSize(4, { ...its, authorization })).toBe(404);

      const holders = [release, beside].map(async ({ records }) => {
        const path = objectPath(LEASES, records, "pipe-scaling-controller");
        return (await admin.json<Lease>({ path })).spec?.holderIdentity;
      });
      expect(new Set(await Promise.all(holders)).size).toBe(2);

      await other.stop();
      for (const each of [release, beside]) {
        const namespaces = new Set(callsOf(each).map(({ namespace }) => namespace));
        expect(namespaces).toEqual(new Set([each.records, each.pipes]));
      }
      await helm(["uninstall", beside.name, "--namespace", beside.namespace], cluster);
    });

    it("keeps pipes, sizes, records and keys when it is uninstalled, and manages them again afterwards", async () => {
      const before = await untouched();
      await operated.stop();
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

    it("manages all namespaces after an upgrade, including later ones", async () => {
      const anywhere = "pipes.allNamespaces=true,pipes.namespaces=null";
      await install(cluster, release, ...QUICK, "--set", anywhere);
      await operated.start();
      const later = await operated.addService(`${release.name}-later`);
      await apply(cluster, [{ apiVersion: "v1", kind: "Namespace", metadata: { name: later.namespace } }]);
      await operated.addPipes(later);
      await waitFor(() => operated.scaling(later), { what: "the controller to create the PipeScaling" });
      expect(await operated.requestSize(2, later)).toBe(200);
      await operated.readyFor("Scaled", later);
      expect(await operated.cpuOfPipes(later)).toEqual(["2", "2", "2"]);
      callsOf(release);
    });
  });
}

const testPod = z.object({
  spec: z.object({
    containers: z.array(z.object({ command: z.array(z.string()), args: z.array(z.string()) })),
  }),
});

function isRole(object: object): object is Role {
  return "rules" in object;
}
