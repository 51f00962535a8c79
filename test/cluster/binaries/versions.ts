import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ClusterError } from "../errors.ts";

/** The folder of the Go module that builds the programs, the only place that states their versions. */
export const MODULE = import.meta.dirname;

export type Versions = ReturnType<typeof readVersions>;

/** The versions of the programs, without the leading v. */
export function readVersions() {
  const mod = readFileSync(join(MODULE, "go.mod"), "utf8");
  const required = (module: string): string => {
    const version = mod.split(`\n\t${module} v`)[1]?.split(/\s/, 1)[0];
    if (!version) throw new Error(`${MODULE}/go.mod requires no ${module}`);
    return version;
  };
  return {
    kubernetes: required("k8s.io/kubernetes"),
    etcd: required("go.etcd.io/etcd/server/v3"),
    kwok: required("sigs.k8s.io/kwok"),
    helm: required("helm.sh/helm/v4"),
  };
}

/** A platform in Go's terms. */
export type Platform = ReturnType<typeof thisPlatform>;

/** @throws ClusterError if the cluster cannot run on this machine */
export function thisPlatform(os: string = process.platform, cpu: string = process.arch) {
  const arch = { x64: "amd64", arm64: "arm64" }[cpu];
  if ((os === "linux" || os === "darwin") && arch) return { os, arch };
  throw new ClusterError(
    `The local cluster runs on Linux and macOS on x64 or arm64, not on ${os}/${cpu}. On Windows use WSL.`,
  );
}
