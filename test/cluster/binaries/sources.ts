import type { Program } from "./binaries.ts";
import type { Platform, Versions } from "./versions.ts";

/** An official download. */
export interface Source {
  readonly program: Program;
  readonly url: string;
  /** URL of its SHA-256. */
  readonly sumUrl: string;
  /** Path of the program in the archive, if the download is a .tar.gz. */
  readonly member?: string;
}

/** @param mirror URL that has the files of each host under its name, such as MIRROR/dl.k8s.io/release/… */
export function sources(versions: Versions, { os, arch }: Platform, mirror?: string): Source[] {
  const base = mirror ? `${mirror.replace(/\/+$/, "")}/` : "https://";
  const kubernetes = (program: Program): Source => {
    const url = `${base}dl.k8s.io/release/v${versions.kubernetes}/bin/${os}/${arch}/${program}`;
    return { program, url, sumUrl: `${url}.sha256` };
  };
  // The releases of kwok have no checksum files, but GitHub publishes a digest of each file.
  const kwok = (program: Program): Source => ({
    program,
    url: `${base}github.com/kubernetes-sigs/kwok/releases/download/v${versions.kwok}/${program}-${os}-${arch}`,
    sumUrl: `${base}api.github.com/repos/kubernetes-sigs/kwok/releases/tags/v${versions.kwok}`,
  });
  const etcd = `${base}github.com/etcd-io/etcd/releases/download/v${versions.etcd}`;
  const etcdDir = `etcd-v${versions.etcd}-${os}-${arch}`;
  const etcdTar = `${etcd}/${etcdDir}.tar.gz`;
  const helm = `${base}get.helm.sh/helm-v${versions.helm}-${os}-${arch}.tar.gz`;
  return [
    { program: "etcd", url: etcdTar, sumUrl: `${etcd}/SHA256SUMS`, member: `${etcdDir}/etcd` },
    kubernetes("kube-apiserver"),
    kubernetes("kube-controller-manager"),
    kubernetes("kube-scheduler"),
    kubernetes("kubectl"),
    kwok("kwok"),
    kwok("kwokctl"),
    { program: "helm", url: helm, sumUrl: `${helm}.sha256sum`, member: `${os}-${arch}/helm` },
  ];
}
