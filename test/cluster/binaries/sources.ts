import type { Program } from "./binaries.ts";
import type { Platform, Versions } from "./versions.ts";

/** An official download and where its SHA-256 is published. */
export interface Source {
  readonly program: Program;
  readonly url: string;
  readonly sumUrl: string;
  /** The file's path in the archive, where the download is a .tar.gz. */
  readonly member?: string;
}

/** Where the official downloads are. A mirror has them by the same paths, under the host's name. */
export type Hosts = (host: string) => string;

export function officialHosts(mirror: string | undefined): Hosts {
  return (host) => (mirror ? `${mirror.replace(/\/+$/, "")}/${host}` : `https://${host}`);
}

export const HOSTS = ["dl.k8s.io", "github.com", "api.github.com", "get.helm.sh"] as const;

/**
 * The eight downloads. Undefined where there are none: Kubernetes publishes no
 * control plane for macOS.
 */
export function sources(versions: Versions, platform: Platform, host: Hosts): Source[] | undefined {
  const { os, arch } = platform;
  if (os !== "linux") return undefined;
  const target = `${os}-${arch}`;
  return [
    etcd(versions.etcd, target, host),
    kubernetes("kube-apiserver", versions.kubernetes, platform, host),
    kubernetes("kube-controller-manager", versions.kubernetes, platform, host),
    kubernetes("kube-scheduler", versions.kubernetes, platform, host),
    kubernetes("kubectl", versions.kubernetes, platform, host),
    kwok("kwok", versions.kwok, target, host),
    kwok("kwokctl", versions.kwok, target, host),
    helm(versions.helm, target, host),
  ];
}

function kubernetes(program: Program, version: string, { os, arch }: Platform, host: Hosts): Source {
  const url = `${host("dl.k8s.io")}/release/v${version}/bin/${os}/${arch}/${program}`;
  return { program, url, sumUrl: `${url}.sha256` };
}

function etcd(version: string, target: string, host: Hosts): Source {
  const release = `${host("github.com")}/etcd-io/etcd/releases/download/v${version}`;
  const folder = `etcd-v${version}-${target}`;
  return {
    program: "etcd",
    url: `${release}/${folder}.tar.gz`,
    sumUrl: `${release}/SHA256SUMS`,
    member: `${folder}/etcd`,
  };
}

/** kwok's releases have no file of sums; GitHub itself publishes one for each file of a release. */
function kwok(program: Program, version: string, target: string, host: Hosts): Source {
  const repository = "kubernetes-sigs/kwok";
  return {
    program,
    url: `${host("github.com")}/${repository}/releases/download/v${version}/${program}-${target}`,
    sumUrl: `${host("api.github.com")}/repos/${repository}/releases/tags/v${version}`,
  };
}

function helm(version: string, target: string, host: Hosts): Source {
  const url = `${host("get.helm.sh")}/helm-v${version}-${target}.tar.gz`;
  return { program: "helm", url, sumUrl: `${url}.sha256sum`, member: `${target}/helm` };
}
