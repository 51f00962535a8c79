import { randomUUID } from "node:crypto";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { helm } from "@pipe-scaling/local-cluster/helm";
import { apply, kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { serviceAccountKubeconfig } from "@pipe-scaling/local-cluster/service-account";
import { CHART } from "../../deploy/chart/path.ts";
import { KubeClient } from "../../src/kube/client.ts";
import { connect } from "../../src/kube/connection.ts";

/** Simulated pods pull no image. */
const IMAGE = "registry.example.com/pipe-scaling-operator";

/** A release of the chart in separate namespaces, with its two accounts. */
export interface Release {
  readonly name: string;
  /** Namespace of the processes. */
  readonly namespace: string;
  readonly records: string;
  readonly pipes: string;
}

function namespace(name: string, labels: Readonly<Record<string, string>> = {}) {
  return { apiVersion: "v1", kind: "Namespace", metadata: { name, labels } };
}

/** Creates the namespaces and the certificate of a release, but does not install it. */
export async function prepareRelease(cluster: Cluster): Promise<Release> {
  const name = `r-${randomUUID().slice(0, 8)}`;
  const release = { name, namespace: `${name}-system`, records: `${name}-records`, pipes: `${name}-pipes` };
  await apply(cluster, [
    // The strictest Pod Security Standard.
    namespace(release.namespace, { "pod-security.kubernetes.io/enforce": "restricted" }),
    namespace(release.pipes),
  ]);
  return release;
}

/** Returns the values of such a release that differ from the defaults. */
export function settings({ records, pipes }: Release): string[] {
  return [
    "--set",
    `records.namespace=${records},pipes.namespaces={${pipes}}`,
    "--set",
    `api.tls.enabled=false,image.repository=${IMAGE}`,
  ];
}

export function install(cluster: Cluster, release: Release, ...args: readonly string[]): Promise<string> {
  const { name, namespace } = release;
  return helm(
    ["upgrade", "--install", name, CHART, "--namespace", namespace, ...settings(release), ...args],
    cluster,
  );
}

export async function remove(cluster: Cluster, { namespace, records, pipes, name }: Release): Promise<void> {
  await helm(["uninstall", name, "--namespace", namespace], cluster);
  await kubectl(cluster, ["delete", "namespace", namespace, records, pipes, "--wait=false"]);
}

const CHART_NAME = "pipe-scaling-operator";

export type Component = "api" | "controller";

/** Name of the ServiceAccount of a process, and of its Deployment. */
export function accountOf({ name }: Release, component: Component): string {
  return name.includes(CHART_NAME) ? `${name}-${component}` : `${name}-${CHART_NAME}-${component}`;
}

/** Returns a client with the permissions of a process of the release. */
export async function clientOf(
  cluster: Cluster,
  release: Release,
  component: Component,
): Promise<KubeClient> {
  const account = accountOf(release, component);
  return new KubeClient(await connect(await serviceAccountKubeconfig(cluster, release.namespace, account)));
}
