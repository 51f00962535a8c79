import type { Cluster } from "@pipe-scaling/local-cluster";
import { helm, tryHelm } from "@pipe-scaling/local-cluster/helm";
import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { beforeAll, describe, expect, it } from "vitest";
import { CHART } from "../../../deploy/chart/path.ts";
import type { ReleaseCluster } from "./cluster.ts";

const IMAGE = "image.repository=registry.example.com/pipe-scaling-operator";

/** Each test builds on those before it. */
export function preflightSuite(chart: ReleaseCluster): void {
  describe("an installation", () => {
    let cluster: Cluster;
    beforeAll(() => {
      cluster = chart.cluster;
    });

    /** Arguments of helm for a release with its own namespaces for the processes and the records. */
    function release(name: string, values: string): readonly string[] {
      const own = `${IMAGE},records.namespace=${name}-records,${values}`;
      const where = ["--namespace", `${name}-system`, "--create-namespace"];
      return ["upgrade", "--install", name, CHART, ...where, "--set", own];
    }

    async function refused(name: string, values: string): Promise<string> {
      const { code, stderr } = await tryHelm(release(name, values), cluster);
      expect(code).toBe(1);
      return stderr;
    }

    const releases = () => helm(["list", "--all-namespaces", "--short"], cluster);

    it("fails before it changes anything if a namespace does not exist", async () => {
      const values = "pipes.namespaces={acme,globex},records.createNamespace=false";
      const errors = await refused("first", values);
      expect(errors).toContain("pipes.namespaces: the namespace acme does not exist");
      expect(errors).toContain("`kubectl create namespace globex`");
      expect(errors).toContain("records.namespace: the namespace first-records does not exist");
      expect(await releases()).toBe("");
    });

    it("succeeds when the namespaces exist", async () => {
      for (const name of ["acme", "globex"]) await kubectl(cluster, ["create", "namespace", name]);
      await helm(release("first", "pipes.namespaces={acme}"), cluster);
      expect(await releases()).toBe("first\n");
    });

    it("is rejected for all namespaces, and for a namespace of another release", async () => {
      expect(await refused("second", "pipes.allNamespaces=true,crds.enabled=false")).toContain(
        "pipes.allNamespaces is true, but the release first in the namespace first-system also manages pipes",
      );
      expect(await refused("second", "pipes.namespaces={globex,acme},crds.enabled=false")).toContain(
        "the release first in the namespace first-system also manages the pipes in acme",
      );
    });

    it("is rejected beside a release that would delete its PipeScalings", async () => {
      await helm(release("first", "pipes.namespaces={acme},crds.keep=false"), cluster);
      const notes = await helm(["get", "notes", "first", "--namespace", "first-system"], cluster);
      expect(notes).toContain("WARNING: crds.keep is false: `helm uninstall first` deletes the CRD");
      expect(await refused("second", "pipes.namespaces={globex},crds.enabled=false")).toContain(
        "the release first in the namespace first-system would delete the CRD",
      );
      await helm(release("first", "pipes.namespaces={acme}"), cluster);
      await helm(release("second", "pipes.namespaces={globex},crds.enabled=false"), cluster);
      expect(await refused("first", "pipes.namespaces={acme},crds.keep=false")).toContain(
        "crds.keep is false, so to uninstall this release would delete the PipeScalings of the release second",
      );
    });

    it("is rejected beside a release for all namespaces", async () => {
      await helm(["uninstall", "second", "--namespace", "second-system"], cluster);
      await helm(release("first", "pipes.allNamespaces=true"), cluster);
      expect(await refused("second", "pipes.namespaces={globex},crds.enabled=false")).toContain(
        "the release first in the namespace first-system has pipes.allNamespaces",
      );
      await helm(
        release("second", "pipes.namespaces={globex},crds.enabled=false,preflight.enabled=false"),
        cluster,
      );
    });
  });
}
