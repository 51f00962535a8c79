import { X509Certificate } from "node:crypto";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { certificatePair } from "@pipe-scaling/local-cluster/certificate";
import { helm } from "@pipe-scaling/local-cluster/helm";
import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { install, prepareRelease, type Release, remove } from "./accounts.ts";
import { statusOver } from "./https.ts";
import { UnpackedImage } from "./image.ts";
import { PodProcess } from "./pod-process.ts";

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
    expect(await statusOver(url, await certificate())).toBe(401);
    await expect(statusOver(url, certificatePair("other").cert)).rejects.toThrow(/certificate/);
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
