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
    function release(name: string, values: string, namespace = `${name}-system`): readonly string[] {
      const own = `${IMAGE},records.namespace=${name}-records,${values}`;
      const where = ["--namespace", namespace, "--create-namespace"];
      return ["upgrade", "--install", name, CHART, ...where, "--set", own];
    }

    async function refused(...given: Parameters<typeof release>): Promise<string> {
      const { code, stderr } = await tryHelm(release(...given), cluster);
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

    it("is rejected if a Secret that the pods need does not exist or lacks a key", async () => {
      const tracing = "tracing.otlpEndpoint=http://collector:4318,tracing.headersSecretName=collector";
      const values = `pipes.namespaces={acme},api.tls.secretName=certificate,${tracing}`;
      const errors = await refused("first", values);
      expect(errors).toContain(
        "api.tls.secretName: the Secret certificate does not exist in the namespace first-system",
      );
      expect(errors).toContain(
        "`kubectl create secret tls certificate --cert tls.crt --key tls.key --namespace",
      );
      expect(errors).toContain("tracing.headersSecretName: the Secret collector does not exist");
      const secret = (name: string, key: string) => [
        ...["create", "secret", "generic", name, "--namespace", "first-system", `--from-literal=${key}=a=b`],
      ];
      await kubectl(cluster, secret("certificate", "tls.crt"));
      await kubectl(cluster, secret("collector", "headers"));
      const others = await refused("first", values);
      expect(others).toContain("the Secret certificate in the namespace first-system lacks tls.key");
      expect(others).not.toContain("collector");
    });

    it("is rejected if the cluster lacks an add-on that the values use", async () => {
      const errors = await refused("first", "pipes.namespaces={acme},monitoring.podMonitor.enabled=true");
      expect(errors).toContain(
        "monitoring.podMonitor.enabled is true, but the cluster has no PodMonitor: install the Prometheus operator first",
      );
    });

    it("succeeds without a Secret that an extra object creates", async () => {
      const external = { apiVersion: "v1", kind: "Secret", metadata: { name: "created" } };
      const values = "pipes.namespaces={acme},api.tls.secretName=created";
      const args = [...release("first", values), "--set-json", `extraObjects=${JSON.stringify([external])}`];
      await helm(args, cluster);
      await helm(release("first", "pipes.namespaces={acme}"), cluster);
    });

    it("is rejected if another release manages the CRD or stores its records in the same namespace", async () => {
      const errors = await refused("second", "pipes.namespaces={globex},records.namespace=first-records");
      expect(errors).toContain(
        "crds.enabled is true, but the release first in the namespace first-system manages the CRD of PipeScaling, and only one can. Set crds.enabled to false.",
      );
      expect(errors).toContain(
        "records.namespace: the release first in the namespace first-system also stores its records in first-records",
      );
      expect(errors).not.toContain("invalid ownership metadata");
    });

    it("warns in the notes if the NetworkPolicies exclude the port of the API server", async () => {
      const port = await kubectl(cluster, [
        ...["get", "endpointslice", "kubernetes", "--output", "jsonpath={.ports[0].port}"],
      ]);
      const warning = `WARNING: the API server listens on port ${port}, but the NetworkPolicies allow only 443, 6443`;
      const notes = (...args: string[]) =>
        helm([...release("first", "pipes.namespaces={acme}"), ...args], cluster);
      expect(await notes()).toContain(warning);
      expect(await notes("--set", `networkPolicy.apiServer.ports={${port}}`)).not.toContain(
        "listens on port",
      );
    });

    it("is rejected for all namespaces, and for a namespace of another release", async () => {
      expect(await refused("second", "pipes.allNamespaces=true,crds.enabled=false")).toContain(
        "pipes.allNamespaces is true, but the release first in the namespace first-system also manages pipes",
      );
      expect(await refused("second", "pipes.namespaces={globex,acme},crds.enabled=false")).toContain(
        "the release first in the namespace first-system also manages the pipes in acme",
      );
    });

    it("is rejected if the API of one release could read Secrets of another", async () => {
      const first = "the release first in the namespace first-system";
      const separate = "crds.enabled=false,records.createNamespace=false,pipes.namespaces={globex}";
      expect(await refused("second", `${separate},records.namespace=acme`)).toContain(
        `records.namespace: ${first} manages the pipes in acme, so the API of this release could read their Secrets`,
      );
      expect(await refused("second", `${separate},records.namespace=first-system`)).toContain(
        "records.namespace: first-system is the namespace of another release, first, so",
      );
      expect(await refused("second", "crds.enabled=false,pipes.namespaces={globex,first-records}")).toContain(
        `pipes.namespaces: ${first} stores its records in first-records, so its API could read the Secrets`,
      );
      expect(await refused("second", separate, "first-records")).toContain(
        `The release second is to be in the namespace first-records, but ${first} stores its records there`,
      );
    });

    it("is rejected if it would delete the CRD of its own release, until the CRD is kept", async () => {
      const separate = "pipes.namespaces={acme},crds.enabled=false";
      await helm(release("first", "pipes.namespaces={acme},crds.keep=false"), cluster);
      for (const values of [separate, `${separate},crds.keep=false`]) {
        expect(await refused("first", values)).toContain(
          "this release installed the CRD with crds.keep=false, so Helm would delete it with all PipeScalings. Upgrade with crds.enabled=true and crds.keep=true first.",
        );
      }
      await helm(release("first", "pipes.namespaces={acme}"), cluster);
      await helm(release("first", separate), cluster);
      expect(await kubectl(cluster, ["get", "crd", "--output", "name"])).toContain("pipescalings");
      await helm(release("first", "pipes.namespaces={acme}"), cluster);
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
