import { X509Certificate } from "node:crypto";
import { text } from "node:stream/consumers";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { type CertificatePair, certificatePair } from "@pipe-scaling/local-cluster/certificate";
import { helm } from "@pipe-scaling/local-cluster/helm";
import { apply, kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { Agent, request } from "undici";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import * as z from "zod";
import { install, prepareRelease, type Release, remove, settings } from "./accounts.ts";
import { UnpackedImage } from "./image.ts";
import { PodProcess } from "./pod-process.ts";
import { rendered } from "./tools.ts";

const SECRET = "api-certificate";
const WITH_TLS = ["--set", `crds.enabled=false,api.tls.enabled=true,api.tls.secretName=${SECRET}`];

/** Returns the status of a request by a client that trusts only this certificate. */
async function send(url: string, ca: string): Promise<number> {
  const dispatcher = new Agent({ connect: { ca } });
  try {
    const { statusCode, body } = await request(`${url}/v1/organizations`, { dispatcher });
    await body.dump();
    return statusCode;
  } finally {
    await dispatcher.destroy();
  }
}

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
    expect(await send(api.url, first.cert)).toBe(401);
    await expect(send(api.url, certificatePair("other").cert)).rejects.toThrow(/certificate/);
    await expect(send(api.url.replace("https:", "http:"), first.cert)).rejects.toThrow(/other side closed/);
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
    await waitFor(async () => (await send(api.url, second.cert)) === 401, { what: "the new certificate" });
    await expect(send(api.url, first.cert)).rejects.toThrow(/certificate/);
  });
});

describe("a release without a certificate", () => {
  const SELF_SIGNED = ["--set", "crds.enabled=false,api.tls.enabled=true"];
  let cluster: Cluster;
  let release: Release;
  beforeAll(async () => {
    cluster = await sharedCluster();
    release = await prepareRelease(cluster);
    await install(cluster, release, ...SELF_SIGNED, "--set", "api.tls.dnsNames={pipes.example.com}");
  });
  afterAll(async () => {
    if (release) await remove(cluster, release);
  });

  /** Runs the command of the notes that gets the certificate, and returns the certificate. */
  async function certificate(): Promise<string> {
    const notes = await helm(["get", "notes", release.name, "--namespace", release.namespace], cluster);
    const [, command = ""] = /^ +kubectl (get secret .*) > ca\.crt$/m.exec(notes) ?? [];
    return await kubectl(cluster, command.replaceAll("'", "").split(/ (?![^{]*}})/));
  }

  it("has a self-signed certificate for the Service, localhost and the names of the values", async () => {
    const { subjectAltName, validFrom, validTo } = new X509Certificate(await certificate());
    const service = `${release.name}-pipe-scaling-operator-api`;
    const names = [`${service}.${release.namespace}.svc`, `${service}.${release.namespace}`, service];
    expect(subjectAltName?.split(", ")).toEqual(
      [...names, "localhost", "pipes.example.com"].map((name) => `DNS:${name}`),
    );
    expect(new Date(validTo).getFullYear() - new Date(validFrom).getFullYear()).toBe(10);
  });

  it("serves HTTPS with it", async () => {
    const image = await UnpackedImage.build();
    const api = await PodProcess.start(image, cluster, release, "api");
    onTestFinished(async () => {
      await api.stop();
      image[Symbol.dispose]();
    });
    const url = api.url.replace("127.0.0.1", "localhost");
    expect(await send(url, await certificate())).toBe(401);
    await expect(send(url, certificatePair("other").cert)).rejects.toThrow(/certificate/);
  });

  it("keeps the certificate on an upgrade, and gets another if the Secret was deleted", async () => {
    const first = await certificate();
    await install(cluster, release, ...SELF_SIGNED);
    expect(await certificate()).toBe(first);
    await kubectl(cluster, [
      "delete",
      "secret",
      "-n",
      release.namespace,
      "--field-selector=type=kubernetes.io/tls",
    ]);
    await install(cluster, release, ...SELF_SIGNED);
    expect(await certificate()).not.toBe(first);
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
