import { appendFileSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { stringify } from "yaml";
import type { Binaries } from "./binaries/binaries.ts";
import type { Environment } from "./environment.ts";
import type { Paths } from "./paths.ts";
import type { Ports } from "./ports.ts";
import { run, tail } from "./run.ts";
import { type PodTiming, stages } from "./stages.ts";

/** The processes of a cluster, by their names in kwokctl. */
export const COMPONENTS = [
  "etcd",
  "kube-apiserver",
  "kube-controller-manager",
  "kube-scheduler",
  "kwok-controller",
] as const;
export type Component = (typeof COMPONENTS)[number];

/** Label of the nodes that kwok leaves to a real kubelet. */
export const KUBELET_LABEL = "test.pipes.clouddb.dev/kubelet";

export type ComponentArgs = Readonly<Partial<Record<Component, Readonly<Record<string, string>>>>>;

export interface KwokctlOptions extends PodTiming {
  readonly ports: Ports;
  readonly controllerManager: boolean;
  /** Additional arguments of the components, without the leading dashes. They override the defaults. */
  readonly args: ComponentArgs;
}

/** Configuration of kwokctl: all components listen on 127.0.0.1 only, and nothing is downloaded. */
function configuration(binaries: Binaries, options: KwokctlOptions): string {
  const { ports, controllerManager, args } = options;
  const all = withDefaults(args);
  const kwokctl = {
    apiVersion: "config.kwok.x-k8s.io/v1alpha1",
    kind: "KwokctlConfiguration",
    options: {
      runtime: "binary",
      bindAddress: "127.0.0.1",
      kubeAuthorization: true,
      kubeAdmission: true,
      securePort: true,
      disable: controllerManager ? [] : ["kube-controller-manager"],
      kubectlBinary: binaries.path("kubectl"),
      etcdBinary: binaries.path("etcd"),
      kubeApiserverBinary: binaries.path("kube-apiserver"),
      kubeControllerManagerBinary: binaries.path("kube-controller-manager"),
      kubeSchedulerBinary: binaries.path("kube-scheduler"),
      kwokControllerBinary: binaries.path("kwok"),
      etcdPort: ports.etcd,
      etcdPeerPort: ports.etcdPeer,
      kubeApiserverPort: ports.apiServer,
      kubeControllerManagerPort: ports.controllerManager,
      kubeSchedulerPort: ports.scheduler,
      kwokControllerPort: ports.kwokController,
    },
    componentsPatches: Object.entries(all).map(([name, extra]) => ({
      name,
      extraArgs: Object.entries(extra).map(([key, value]) => ({ key, value })),
    })),
  };
  return [kwokctl, ...stages(options)].map((document) => stringify(document)).join("---\n");
}

function withDefaults(args: ComponentArgs): ComponentArgs {
  // There is one replica of each, and the renewals of their Leases would add writes to every test.
  const alone = { "leader-elect": "false" };
  return {
    ...args,
    // Data need not survive a power failure, and most of the time of a write would be waiting for the disk.
    etcd: { "unsafe-no-fsync": "true", ...args.etcd },
    "kube-controller-manager": { ...alone, ...args["kube-controller-manager"] },
    "kube-scheduler": { ...alone, ...args["kube-scheduler"] },
    "kwok-controller": {
      "manage-all-nodes": "false",
      "manage-nodes-with-label-selector": `!${KUBELET_LABEL}`,
      ...args["kwok-controller"],
    },
  };
}

/**
 * The environment of a program that works on a cluster: `env` without variables that select another cluster or change
 * the settings of a component, and with our programs first on the PATH, because kwokctl uses the first kubectl there.
 */
export function clusterEnvironment(env: Environment, binaries: Binaries, dir: string): Environment {
  const foreign = /^(KWOK_|ETCD_|KUBECONFIG$|KUBECACHEDIR$)/;
  return {
    ...Object.fromEntries(Object.entries(env).filter(([name]) => !foreign.test(name))),
    PATH: [binaries.dir, env["PATH"]].filter(Boolean).join(delimiter),
    // The discovery cache of kubectl, which would be in ~/.kube of the user.
    KUBECACHEDIR: join(dir, "kubectl-cache"),
  };
}

type Context = { readonly env: Environment; readonly signal?: AbortSignal | undefined };
type Folder = { readonly name: string; readonly dir: string };

/** Starts the cluster whose folder is `dir` with kwokctl; returns when its API server responds. */
export async function createCluster(
  paths: Paths,
  folder: Folder,
  binaries: Binaries,
  options: KwokctlOptions,
  context: Context,
): Promise<void> {
  const { dir } = folder;
  const config = join(dir, "kwokctl.yaml");
  writeFileSync(config, configuration(binaries, options), { mode: 0o600 });
  mkdirSync(join(dir, "bin"));
  // A link in the folder of the cluster, like those of its components, so that it is found and killed with them.
  symlinkSync(binaries.path("kwokctl"), kwokctlOf(dir));
  await kwokctl(
    paths,
    folder,
    ["create", "cluster", "--config", config, "--kubeconfig", adminKubeconfig(dir)],
    binaries,
    context,
  );
}

/** Restarts the components that are not running, with kwokctl. */
export async function restartComponents(
  paths: Paths,
  folder: Folder,
  binaries: Binaries,
  context: Context,
): Promise<void> {
  await kwokctl(paths, folder, ["start", "cluster"], binaries, context);
}

async function kwokctl(
  paths: Paths,
  { name, dir }: Folder,
  args: readonly string[],
  binaries: Binaries,
  { env, signal }: Context,
): Promise<void> {
  const finished = await run(kwokctlOf(dir), [...args, "--name", name], {
    env: {
      // With the default, garbage collection takes a sixth of the API server's time. More memory reduces it.
      GOGC: "400",
      ...clusterEnvironment(env, binaries, dir),
      KWOK_WORKDIR: paths.kwok,
    },
    detached: true,
    signal,
  });
  mkdirSync(join(dir, "logs"), { recursive: true });
  appendFileSync(join(dir, "logs", "kwokctl.log"), finished.stdout + finished.stderr);
  if (finished.code !== 0) {
    throw new Error(`kwokctl could not start cluster ${name}:\n${tail(finished.stderr)}`);
  }
}

function kwokctlOf(dir: string): string {
  return join(dir, "bin", "kwokctl");
}

/** Path of our kubeconfig; by default, kwokctl would add the cluster to that of the user. */
export function adminKubeconfig(dir: string): string {
  return join(dir, "admin.kubeconfig");
}
