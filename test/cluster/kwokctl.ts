import { appendFileSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { stringify } from "yaml";
import type { Binaries } from "./binaries/binaries.ts";
import type { Environment } from "./environment.ts";
import type { Paths } from "./paths.ts";
import type { Ports } from "./ports.ts";
import { run, tail } from "./run.ts";
import { type PodTiming, stages } from "./stages.ts";

/** The processes of a cluster, by the names that kwokctl gives them. */
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
  /** More arguments for the components, without the leading dashes. They come last, so they win. */
  readonly args: ComponentArgs;
}

/** kwokctl's configuration: everything on loopback, no downloads, nothing beyond what is tested. */
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
  // There is one of each, and their leases would be writes that no test has asked for.
  const alone = { "leader-elect": "false" };
  return {
    ...args,
    // A test cluster need not survive a power cut, and waiting for the disk is most of a write's time.
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
 * The environment of a program that works on a cluster: the given one, without
 * what would make it look at another cluster or change a component's settings,
 * and with our programs first (kwokctl prefers whatever kubectl is on the PATH).
 */
export function clusterEnvironment(env: Environment, binaries: Binaries, dir: string): Environment {
  const foreign = /^(KWOK_|ETCD_|KUBECONFIG$|KUBECACHEDIR$)/;
  return {
    ...Object.fromEntries(Object.entries(env).filter(([name]) => !foreign.test(name))),
    PATH: [binaries.dir, env["PATH"]].filter(Boolean).join(delimiter),
    // kubectl's cache of what the server can do; by default in the user's ~/.kube.
    KUBECACHEDIR: join(dir, "kubectl-cache"),
  };
}

type Context = { readonly env: Environment; readonly signal?: AbortSignal | undefined };
type Folder = { readonly name: string; readonly dir: string };

/** Has kwokctl start the cluster whose folder is `dir`; returns when its API server responds. */
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
  // Started from the cluster's folder as its components are, so that it is found and killed with them.
  symlinkSync(binaries.path("kwokctl"), kwokctlOf(dir));
  await kwokctl(
    paths,
    folder,
    ["create", "cluster", "--config", config, "--kubeconfig", adminKubeconfig(dir)],
    binaries,
    context,
  );
}

/** Has kwokctl start those components again that do not run. */
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
      // By default, garbage collection takes a sixth of the time of the API server. It takes less with more memory.
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

/** kwokctl writes a kubeconfig to the user's own unless told otherwise; this is ours. */
export function adminKubeconfig(dir: string): string {
  return join(dir, "admin.kubeconfig");
}
