import { text } from "node:stream/consumers";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { type CertificatePair, certificatePair } from "@pipe-scaling/local-cluster/certificate";
import { apply } from "@pipe-scaling/local-cluster/kubectl";
import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { install, prepareRelease, type Release, remove, settings } from "./accounts.ts";
import { statusOver } from "./https.ts";
import { UnpackedImage } from "./image.ts";
import { PodProcess } from "./pod-process.ts";
import { rendered } from "./tools.ts";

const SECRET = "api-certificate";
const WITH_TLS = ["--set", `crds.enabled=false,api.tls.enabled=true,api.tls.secretName=${SECRET}`];

describe("a release with a certificate in a Secret", () => {
  const first = certificatePair("first");
  let cluster: Cluster;
  let release: Release;
  let image: UnpackedImage;
  let api: PodProcess;
  beforeAll(async () => {
    cluster = await sharedCluster();
    release = await prepareRelease(cluster);
    await apply(cluster, [secret(first)]);
    await install(cluster, release, ...WITH_TLS);
    image = await UnpackedImage.build();
    api = await PodProcess.start(image, cluster, release, "api");
  });
  afterAll(async () => {
    await api?.stop();
    image?.[Symbol.dispose]();
    if (release) await remove(cluster, release);
  });

  function secret({ cert, key }: CertificatePair) {
    return {
      apiVersion: "v1",
      kind: "Secret",
      type: "kubernetes.io/tls",
      metadata: { name: SECRET, namespace: release.namespace },
      stringData: { "tls.crt": cert, "tls.key": key },
    };
  }

  it("serves only HTTPS with it", async () => {
    expect(await statusOver(api.url, first.cert)).toBe(401);
    await expect(statusOver(api.url, certificatePair("other").cert)).rejects.toThrow(/certificate/);
    await expect(statusOver(api.url.replace("https:", "http:"), first.cert)).rejects.toThrow(
      /other side closed/,
    );
  });

  it("passes its own test", async () => {
    const args = [...settings(release), ...WITH_TLS, "--show-only", "templates/tests/api.yaml"];
    const [pod] = z.tuple([testPod]).parse(await rendered(...args));
    const [{ command, args: given, env }] = pod.spec.containers;
    const variables = Object.fromEntries(env.map(({ name, value }) => [name, value]));
    const child = image.start({ command, args: [...given.slice(0, -1), api.url] }, variables);
    expect(await (child.stdout && text(child.stdout))).toBe(
      "GET /openapi.json: 200\nGET /v1/organizations: 401\n",
    );
  });

  it("serves a renewed certificate without a restart", async () => {
    const second = certificatePair("second");
    await apply(cluster, [secret(second)]);
    await api.remount();
    await waitFor(async () => (await statusOver(api.url, second.cert)) === 401, {
      what: "the new certificate",
    });
    await expect(statusOver(api.url, first.cert)).rejects.toThrow(/certificate/);
  });
});

const testPod = z.object({
  spec: z.object({
    containers: z.tuple([
      z.object({
        command: z.array(z.string()),
        args: z.array(z.string()),
        env: z.array(z.object({ name: z.string(), value: z.string() })),
      }),
    ]),
  }),
});
