import type { ChildProcess } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { serviceAccountKubeconfig } from "@pipe-scaling/local-cluster/service-account";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import * as z from "zod";
import { accountOf, type Component, type Release } from "./accounts.ts";
import type { RunnableImage } from "./image.ts";

const named = z.object({ name: z.string() });
const podSpec = z.object({
  containers: z.tuple([
    z.object({
      command: z.array(z.string()).optional(),
      args: z.array(z.string()),
      env: z.array(z.object({ name: z.string(), value: z.string() })),
      volumeMounts: z.array(z.object({ name: z.string(), mountPath: z.string() })),
    }),
  ]),
  volumes: z.array(
    z.object({
      name: z.string(),
      configMap: named.optional(),
      secret: z.object({ secretName: z.string() }).optional(),
    }),
  ),
});
const deployment = z.object({ spec: z.object({ template: z.object({ spec: podSpec }) }) });
const content = z.object({ data: z.record(z.string(), z.string()) });

const listening = z.object({ msg: z.literal("listening"), url: z.url().optional(), opsUrl: z.url() });

/**
 * A process of the release outside of the cluster, because simulated pods run nothing. It has the files of the image,
 * and the arguments, environment and mounted files of its pod. It differs from a pod in its addresses, and in the
 * kubeconfig with the token of its service account, because it has no token mount.
 */
export class PodProcess {
  /** URL of the API; absent for the controller. */
  url = "";
  /** URL of the operations port. */
  opsUrl = "";
  /** Updates the mounted files, as the kubelet does some time after a change of a ConfigMap or Secret. */
  readonly remount: () => Promise<void>;
  readonly #child: ChildProcess;
  readonly #files: string;
  readonly #closed: Promise<number | null>;
  #log = "";

  private constructor(child: ChildProcess, files: string, remount: () => Promise<void>) {
    this.#child = child;
    this.#files = files;
    this.remount = remount;
    this.#closed = new Promise((resolve) => child.once("close", resolve));
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on("data", (chunk: Buffer) => {
        this.#log += chunk.toString();
      });
    }
  }

  /** Waits until the readiness probe succeeds. */
  static async start(
    image: RunnableImage,
    cluster: Cluster,
    release: Release,
    component: Component,
  ): Promise<PodProcess> {
    const get = async (kind: string, name: string): Promise<unknown> =>
      JSON.parse(await kubectl(cluster, ["get", kind, name, "-n", release.namespace, "-o", "json"]));
    const found = await get("deployment", accountOf(release, component));
    const { containers, volumes } = deployment.parse(found).spec.template.spec;
    const [container] = containers;
    const files = image.makeMount();
    const mount = async () => {
      for (const { name, mountPath } of container.volumeMounts) {
        const volume = volumes.find((each) => each.name === name);
        const isSecret = volume?.secret !== undefined;
        const source = await get(
          isSecret ? "secret" : "configmap",
          volume?.secret?.secretName ?? volume?.configMap?.name ?? "",
        );
        for (const [file, text] of Object.entries(content.parse(source).data)) {
          const path = join(files, mountPath, file);
          mkdirSync(dirname(path), { recursive: true });
          writeFileSync(path, isSecret ? Buffer.from(text, "base64") : text);
        }
      }
    };
    await mount();
    const mounts = container.volumeMounts.map(({ mountPath }) => mountPath);
    const inFiles = (value: string) => (mounts.includes(dirname(value)) ? join(files, value) : value);
    const account = accountOf(release, component);
    const kubeconfig = join(files, "kubeconfig");
    // A copy, because the user of the image cannot read the folder of the cluster.
    writeFileSync(
      kubeconfig,
      readFileSync(await serviceAccountKubeconfig(cluster, release.namespace, account)),
    );
    const child = image.start(container, {
      ...Object.fromEntries(container.env.map(({ name, value }) => [name, inFiles(value)])),
      PIPE_SCALING_KUBECONFIG: kubeconfig,
      PIPE_SCALING_HOST: "127.0.0.1",
      PIPE_SCALING_OPS_PORT: "0",
      ...(component === "api" ? { PIPE_SCALING_PORT: "0" } : {}),
    });
    const started = new PodProcess(child, files, mount);
    try {
      await started.#ready();
    } catch (cause) {
      await started.stop();
      throw new Error(`the ${component} did not become ready: ${started.#log}`, { cause });
    }
    return started;
  }

  async #ready(): Promise<void> {
    const ended = new AbortController();
    this.#child.once("close", () => ended.abort(new Error("it has ended")));
    const { signal } = ended;
    const { url, opsUrl } = await waitFor(() => this.#addresses(), {
      what: "the process to start listening",
      signal,
    });
    await waitFor(async () => (await fetch(`${opsUrl}/readyz`)).ok, {
      what: "the process to be ready",
      signal,
    });
    this.url = url ?? "";
    this.opsUrl = opsUrl;
  }

  #addresses(): z.output<typeof listening> | undefined {
    const lines = this.#log.split("\n").slice(0, -1);
    return lines
      .map((line) => listening.safeParse(JSON.parse(line)).data)
      .find((fields) => fields !== undefined);
  }

  /** Ends the process like the kubelet, and returns its exit code. */
  async stop(): Promise<number | null> {
    this.#child.kill("SIGTERM");
    const code = await this.#closed;
    rmSync(this.#files, { recursive: true, force: true });
    return code;
  }
}
