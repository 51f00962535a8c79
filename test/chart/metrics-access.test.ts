import { randomUUID } from "node:crypto";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { apply, kubectl, untilEstablished } from "@pipe-scaling/local-cluster/kubectl";
import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { install, prepareRelease, type Release, remove } from "./accounts.ts";
import { UnpackedImage } from "./image.ts";
import { PodProcess } from "./pod-process.ts";

/** Only so that the release can be installed: no Prometheus operator runs. */
const SERVICE_MONITORS = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "servicemonitors.monitoring.coreos.com" },
  spec: {
    group: "monitoring.coreos.com",
    scope: "Namespaced",
    names: { kind: "ServiceMonitor", plural: "servicemonitors" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
      },
    ],
  },
};

const VALUES = [
  "crds.enabled=false",
  "monitoring.authentication.enabled=true",
  "monitoring.serviceMonitor.enabled=true",
];

describe("with monitoring.authentication.enabled, the metrics", () => {
  let cluster: Cluster;
  let release: Release;
  let image: UnpackedImage;
  const processes = new Map<string, PodProcess>();
  beforeAll(async () => {
    cluster = await sharedCluster();
    release = await prepareRelease(cluster);
    await apply(cluster, [SERVICE_MONITORS]);
    await untilEstablished(cluster, [SERVICE_MONITORS.metadata.name]);
    await install(cluster, release, "--set", VALUES.join());
    image = await UnpackedImage.build();
    for (const component of ["api", "controller"] as const) {
      processes.set(component, await PodProcess.start(image, cluster, release, component));
    }
  });
  afterAll(async () => {
    await Promise.all([...processes.values()].map((each) => each.stop()));
    image?.[Symbol.dispose]();
    if (release) await remove(cluster, release);
  });

  async function status(component: string, path: string, token?: string): Promise<number> {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const response = await fetch(`${processes.get(component)?.opsUrl}${path}`, { headers });
    const text = await response.text();
    expect(text.includes("process_cpu_seconds_total")).toBe(response.ok && path === "/metrics");
    return response.status;
  }

  /** Returns the token that the ServiceMonitor refers to. */
  async function tokenOfMonitor(): Promise<string> {
    const get = (...args: readonly string[]) => kubectl(cluster, ["get", "-n", release.namespace, ...args]);
    const [name = "", key = ""] = (
      await get(
        "servicemonitor",
        "-o",
        "jsonpath={.items[0].spec.endpoints[0].authorization.credentials['name','key']}",
      )
    ).split(" ");
    const encoded = await waitFor(() => get("secret", name, "-o", `jsonpath={.data.${key}}`), {
      what: "the token in the Secret",
    });
    return Buffer.from(encoded, "base64").toString();
  }

  const otherToken = () => kubectl(cluster, ["create", "token", "default", "-n", release.namespace]);

  describe.each(["api", "controller"])("of the %s", (component) => {
    it("are served with the token of the ServiceMonitor", async () => {
      expect(await status(component, "/metrics", await tokenOfMonitor())).toBe(200);
    });

    it("are denied with 403 to a token whose user may not read them", async () => {
      expect(await status(component, "/metrics", (await otherToken()).trim())).toBe(403);
    });

    it("are denied with 401 without a token and with an invalid one", async () => {
      expect(await status(component, "/metrics")).toBe(401);
      expect(await status(component, "/metrics", "invalid")).toBe(401);
    });

    it.each(["/healthz", "/readyz"])("leave %s open", async (path) => {
      expect(await status(component, path)).toBe(200);
    });
  });

  it("are denied with 503 if the processes have no permission to review tokens", async () => {
    const name = `${release.name}-pipe-scaling-operator-metrics-reviewer.${release.namespace}`;
    await kubectl(cluster, ["delete", "clusterrolebinding", name]);
    for (const component of processes.keys()) {
      await waitFor(async () => (await status(component, "/metrics", randomUUID())) === 503, {
        what: "the missing permission to take effect",
      });
      expect(await status(component, "/metrics", (await otherToken()).trim())).toBe(503);
    }
  });
});
