import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A folder that is removed when the test finishes. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "kube-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export interface KubeconfigOptions {
  /** The user entry: how to authenticate. */
  readonly user?: object;
  readonly proxyUrl?: string;
}

/** Writes a kubeconfig for one server, whose certificate is not verified. @returns its path */
export function writeKubeconfig(server: string, { user = {}, proxyUrl }: KubeconfigOptions = {}): string {
  const path = join(temporaryFolder(), "kubeconfig");
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster: { server, "insecure-skip-tls-verify": true, "proxy-url": proxyUrl } }],
    users: [{ name: "u", user }],
    contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
    "current-context": "x",
  };
  writeFileSync(path, JSON.stringify(config));
  return path;
}
