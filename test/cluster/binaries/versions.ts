import { readFileSync } from "node:fs";
import { ClusterError } from "../errors.ts";

/** The versions of the cluster's programs, without the leading v. */
export interface Versions {
  readonly kubernetes: string;
  readonly etcd: string;
  readonly kwok: string;
  readonly helm: string;
}

/** The Go module that builds the programs; the one place where their versions are written. */
export const MODULE = {
  mod: new URL("go.mod", import.meta.url),
  sum: new URL("go.sum", import.meta.url),
} as const;

export function readVersions(): Versions {
  const mod = readFileSync(MODULE.mod, "utf8");
  return {
    kubernetes: required(mod, "k8s.io/kubernetes"),
    etcd: required(mod, "go.etcd.io/etcd/server/v3"),
    kwok: required(mod, "sigs.k8s.io/kwok"),
    helm: required(mod, "helm.sh/helm/v4"),
  };
}

function required(mod: string, module: string): string {
  const line = mod.split("\n").find((candidate) => candidate.startsWith(`\t${module} v`));
  const version = line?.slice(module.length + 3).split(" ", 1)[0];
  if (!version) throw new Error(`${MODULE.mod.pathname} requires no ${module}`);
  return version;
}

export interface Platform {
  readonly os: "linux" | "darwin";
  readonly arch: "amd64" | "arm64";
}

/** This machine, in Go's words. @throws ClusterError where the cluster cannot run. */
export function thisPlatform(os: string = process.platform, cpu: string = process.arch): Platform {
  const arch = { x64: "amd64", arm64: "arm64" }[cpu];
  if ((os === "linux" || os === "darwin") && (arch === "amd64" || arch === "arm64")) return { os, arch };
  throw new ClusterError(
    `The local cluster runs on Linux and macOS on x64 or arm64, not on ${os}/${cpu}. On Windows use WSL.`,
  );
}

/** The name of a set of programs in the cache. */
export function cacheKey({ kubernetes, etcd, kwok, helm }: Versions, { os, arch }: Platform): string {
  return `kubernetes-${kubernetes}_etcd-${etcd}_kwok-${kwok}_helm-${helm}_${os}-${arch}`;
}
