import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Environment } from "../environment.ts";
import { ClusterError } from "../errors.ts";

/** Folder of the Go module that builds the programs. Its go.mod has their versions. */
export const MODULE = import.meta.dirname;

export type Versions = ReturnType<typeof readVersions>;

/**
 * The versions of the programs, without the leading v.
 *
 * @param env can select another version of Kubernetes
 * @throws ClusterError if that is not a version
 */
export function readVersions(env: Environment = {}) {
  const mod = readFileSync(join(MODULE, "go.mod"), "utf8");
  const required = (module: string): string => {
    const version = mod.split(`\n\t${module} v`)[1]?.split(/\s/, 1)[0];
    if (!version) throw new Error(`${MODULE}/go.mod requires no ${module}`);
    return version;
  };
  const pinned = required("k8s.io/kubernetes");
  return {
    kubernetes: chosenKubernetes(env) ?? pinned,
    /** The Kubernetes version of the Go module. */
    pinnedKubernetes: pinned,
    etcd: required("go.etcd.io/etcd/server/v3"),
    kwok: required("sigs.k8s.io/kwok"),
    helm: required("helm.sh/helm/v4"),
  };
}

/**
 * The version of Kubernetes that the user chose, without the leading v.
 *
 * @throws ClusterError if that is not a version
 */
export function chosenKubernetes(env: Environment): string | undefined {
  const chosen = env["PIPE_SCALING_KUBERNETES_VERSION"];
  if (!chosen) return undefined;
  const [, version] = /^v?(1\.\d+\.\d+)$/.exec(chosen) ?? [];
  if (version) return version;
  throw new ClusterError(
    `"${chosen}" is not a version of Kubernetes. Use a released version with its patch number, such as 1.35.4.`,
  );
}

/** A platform, with the names that Go uses. */
export type Platform = ReturnType<typeof thisPlatform>;

/** @throws ClusterError if the cluster cannot run on this machine */
export function thisPlatform(os: string = process.platform, cpu: string = process.arch) {
  const arch = { x64: "amd64", arm64: "arm64" }[cpu];
  if ((os === "linux" || os === "darwin") && arch) return { os, arch };
  throw new ClusterError(
    `The local cluster runs on Linux and macOS on x64 or arm64, not on ${os}/${cpu}. On Windows use WSL.`,
  );
}
