import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { helm, tryHelm } from "@pipe-scaling/local-cluster/helm";
import { apply, kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { pipeDeployment } from "../../support/fixtures/pipe.ts";
import { organizationRecord, serviceRecord } from "../../support/fixtures/records.ts";
import { prepareRelease, type Release, settings } from "../accounts.ts";
import { UnpackedImage } from "../image.ts";
import { type Package, packagePresent, packagePrevious } from "../packages.ts";
import { PodProcess } from "../pod-process.ts";
import type { ReleaseCluster } from "./cluster.ts";

const DEFINITION = "pipescalings.pipes.clouddb.dev";
const ORGANIZATION = "11111111-1111-4111-8111-111111111111";
const SERVICE = "22222222-2222-4222-8222-222222222222";

const objects = z.object({
  items: z.array(
    z.object({
      kind: z.string(),
      metadata: z.object({ name: z.string(), uid: z.string(), generation: z.number().optional() }),
      spec: z.unknown().optional(),
      data: z.unknown().optional(),
    }),
  ),
});
const scaling = z.object({
  status: z.object({
    tier: z.string().optional(),
    conditions: z.array(z.object({ type: z.string(), status: z.string(), reason: z.string() })),
  }),
});

/** Upgrades of a release, with their effect on the CRD and on objects of users. Each test builds on those before it. */
export function upgradeSuite(chart: ReleaseCluster): void {
  describe("an upgrade of the chart", { timeout: 120_000 }, () => {
    let dir: string;
    let previous: Package;
    let present: Package;
    let cluster: Cluster;
    let image: UnpackedImage;
    let release: Release;
    /** A second release in another namespace, for the same pipes. */
    let other: Release;
    let controller: PodProcess | undefined;
    let untouched: Awaited<ReturnType<typeof whatPeopleHave>>;

    beforeAll(async () => {
      dir = mkdtempSync(join(tmpdir(), "pipe-scaling-packages-"));
      previous = await packagePrevious(dir);
      present = await packagePresent(dir);
      cluster = chart.cluster;
      release = await prepareRelease(cluster);
      const { records, pipes } = release;
      other = { ...(await prepareRelease(cluster)), records, pipes };
      image = await UnpackedImage.build();
    });
    afterAll(async () => {
      await stop();
      image?.[Symbol.dispose]();
      rmSync(dir, { recursive: true, force: true });
    });

    function command(
      verb: "install" | "upgrade",
      of: Release,
      { path }: Package,
      ...values: string[]
    ): string[] {
      const set = values.flatMap((value) => ["--set", value]);
      return [verb, of.name, path, "--namespace", of.namespace, ...settings(of), ...set, "--wait"];
    }
    const run = (...given: Parameters<typeof command>) => helm(command(...given), cluster);

    async function uninstall({ name, namespace }: Release): Promise<void> {
      await stop();
      await helm(["uninstall", name, "--namespace", namespace, "--wait"], cluster);
    }

    async function stop(): Promise<void> {
      await controller?.stop();
      controller = undefined;
    }

    /** Replaces the controller with that of the current release. */
    async function operate(of: Release): Promise<void> {
      await stop();
      controller = await PodProcess.start(image, cluster, of, "controller");
    }

    /** Waits until all pipes have their size and the status has this tier. */
    function settled(tier: string | undefined) {
      return waitFor(
        async () => {
          const got = await kubectl(cluster, ["get", "psc", SERVICE, "-n", release.pipes, "-o", "json"]);
          const { status } = scaling.parse(JSON.parse(got));
          const isReady = status.conditions.some((each) => each.type === "Ready" && each.status === "True");
          return isReady && status.tier === tier;
        },
        { what: `the pipes to have their size, and the status to have the tier ${tier}` },
      );
    }

    /** Returns everything that a release must not change: objects of users, and every ReplicaSet of the pipes. */
    async function whatPeopleHave() {
      const kinds = [DEFINITION, "deployments", "replicasets", "configmaps"].join();
      const found = [release.pipes, release.records].map(async (namespace) =>
        objects.parse(JSON.parse(await kubectl(cluster, ["get", kinds, "-n", namespace, "-o", "json"]))),
      );
      return (await Promise.all(found)).flatMap(({ items }) => items);
    }

    /** Returns the version of the CRD in the cluster. */
    async function definition() {
      const part = (path: string) => kubectl(cluster, ["get", "crd", DEFINITION, "-o", `jsonpath={${path}}`]);
      const version = ".spec.versions[0]";
      const status = await part(`${version}.schema.openAPIV3Schema.properties.status.properties`);
      return {
        version: await part(".metadata.labels.app\\.kubernetes\\.io/version"),
        knowsTier: "tier" in JSON.parse(status),
        showsTier: (await part(`${version}.additionalPrinterColumns[*].name`)).split(" ").includes("Tier"),
        owner: await part(".metadata.annotations.meta\\.helm\\.sh/release-name"),
      };
    }
    const olderDefinition = () => ({
      version: previous.version,
      knowsTier: false,
      showsTier: false,
      owner: release.name,
    });
    const presentDefinition = (owner = release.name) => ({
      version: present.version,
      knowsTier: true,
      showsTier: true,
      owner,
    });

    it("starts from a running older version", async () => {
      await run("install", release, previous);
      expect(await definition()).toEqual(olderDefinition());
      const { records, pipes } = release;
      const made = [
        organizationRecord({ id: ORGANIZATION, tier: "scale" }),
        serviceRecord({ id: SERVICE, organizationId: ORGANIZATION, namespace: pipes }),
      ];
      await apply(cluster, [
        ...made.map((record) => ({ ...record, metadata: { ...record.metadata, namespace: records } })),
        ...["a", "b"].map((name) => pipeDeployment({ name, namespace: pipes, serviceId: SERVICE, cores: 1 })),
      ]);
      await operate(release);
      await settled(undefined);
      const size = JSON.stringify({ spec: { replicaCpuMillicores: 2000, replicaMemoryGb: 8 } });
      await kubectl(cluster, ["patch", "psc", SERVICE, "-n", pipes, "--type", "merge", "--patch", size]);
      // One ReplicaSet for the original size of each pipe, and one for the new size.
      const areRolledOut = async () => {
        untouched = await whatPeopleHave();
        return untouched.filter(({ kind }) => kind === "ReplicaSet").length === 4;
      };
      await waitFor(areRolledOut, { what: "the rollout of both pipes" });
      await settled(undefined);
      untouched = await whatPeopleHave();
    });

    it("also upgrades the CRD, and restarts no pipe", async () => {
      await run("upgrade", release, present);
      expect(await definition()).toEqual(presentDefinition());
      await operate(release);
      await settled("scale");
      expect(await whatPeopleHave()).toEqual(untouched);
    });

    it("can be rolled back", async () => {
      await helm(["rollback", release.name, "--namespace", release.namespace, "--wait"], cluster);
      expect(await definition()).toEqual(olderDefinition());
      await operate(release);
      await settled(undefined);
      expect(await whatPeopleHave()).toEqual(untouched);
      await run("upgrade", release, present);
    });

    it("keeps the CRD if crds.enabled becomes false", async () => {
      await run("upgrade", release, present, "crds.enabled=false");
      expect(await definition()).toEqual(presentDefinition());
      expect(await whatPeopleHave()).toEqual(untouched);
      await run("upgrade", release, present);
    });

    it("keeps the CRD, sizes and records after an uninstall, and a release of the same name adopts them", async () => {
      await uninstall(release);
      expect(await definition()).toEqual(presentDefinition());
      expect(await whatPeopleHave()).toEqual(untouched);
      await run("install", release, previous);
      expect(await definition()).toEqual(olderDefinition());
      await run("upgrade", release, present);
      await operate(release);
      await settled("scale");
      expect(await whatPeopleHave()).toEqual(untouched);
      await uninstall(release);
    });

    it("names the owner to a release of another name, which can take over the objects", async () => {
      const { code, stderr } = await tryHelm(command("install", other, present), cluster);
      expect(code).toBe(1);
      expect(stderr).toMatch(/invalid ownership metadata/);
      expect(stderr).toContain(`current value is "${release.name}"`);
      await helm([...command("install", other, present), "--take-ownership"], cluster);
      expect(await definition()).toEqual(presentDefinition(other.name));
      await operate(other);
      await settled("scale");
      expect(await whatPeopleHave()).toEqual(untouched);
    });

    it("does not manage the CRD and the records if the values exclude them", async () => {
      await uninstall(other);
      await run("install", release, present, "crds.enabled=false", "records.createNamespace=false");
      expect(await definition()).toEqual(presentDefinition(other.name));
      expect(await whatPeopleHave()).toEqual(untouched);
      await uninstall(release);
    });

    it("deletes the CRD and all sizes only with crds.keep=false, and restarts no pipe", async () => {
      await run("install", other, present, "crds.keep=false");
      await uninstall(other);
      expect(await kubectl(cluster, ["get", "crd", "-o", "name"])).toBe("");
      const pipes = await kubectl(cluster, ["get", "replicasets", "-n", release.pipes, "-o", "json"]);
      const { items } = objects.parse(JSON.parse(pipes));
      expect(items).toEqual(untouched.filter(({ kind }) => kind === "ReplicaSet"));
    });
  });
}
