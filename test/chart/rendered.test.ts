import { randomUUID } from "node:crypto";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { apply, kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { rendered, VALUE_SETS, valuesFile } from "./tools.ts";

/** API groups of add-ons that the local cluster does not have. */
const ADD_ONS = ["cert-manager.io", "gateway.networking.k8s.io", "monitoring.coreos.com"];

describe("the rendered chart", () => {
  const id = randomUUID().slice(0, 8);
  const namespaces = {
    records: `s-${id}-records`,
    acme: `s-${id}-acme`,
    globex: `s-${id}-globex`,
    own: `s-${id}-own`,
  };
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await sharedCluster();
    const metadata = { labels: { "pod-security.kubernetes.io/enforce": "restricted" } };
    await apply(
      cluster,
      Object.values(namespaces).map((name) => ({
        apiVersion: "v1",
        kind: "Namespace",
        metadata: { ...metadata, name },
      })),
    );
    const account = ["get", "serviceaccount", "default", "--namespace", namespaces.own];
    await waitFor(() => kubectl(cluster, account), { what: "the default service account" });
  });
  afterAll(async () => {
    await kubectl(cluster, ["delete", "namespace", ...Object.values(namespaces), "--wait=false"]);
  });

  /** Replaces the namespaces with existing ones. */
  function placed(text: string): string {
    return text
      .replaceAll("pipe-scaling-records", namespaces.records)
      .replaceAll("pipe-scaling-system", namespaces.own)
      .replaceAll("acme-pipes", namespaces.acme)
      .replaceAll("globex-pipes", namespaces.globex);
  }

  it.each(VALUE_SETS)(
    "is accepted by the API server with the %s values, without unknown fields or warnings",
    async (set) => {
      const objects = (await rendered("--values", valuesFile(set))).filter(
        ({ apiVersion }) => !ADD_ONS.some((group) => apiVersion.startsWith(`${group}/`)),
      );
      const input = placed(objects.map((object) => stringify(object)).join("---\n"));
      const flags = [
        "--server-side",
        "--force-conflicts",
        "--dry-run=server",
        "--validate=strict",
        "-f",
        "-",
      ];
      const output = await kubectl(cluster, ["apply", ...flags, "--warnings-as-errors"], { input });
      expect(output.trimEnd().split("\n")).toHaveLength(objects.length);
    },
  );
});
