import { readFileSync } from "node:fs";
import { isatty } from "node:tty";
import * as z from "zod";
import { Deadline } from "./deadline.ts";
import { messageOf } from "./errors.ts";
import type { ExecConfig, KubeconfigCluster } from "./kubeconfig-files.ts";
import { runPlugin } from "./plugin-process.ts";
import type { Environment } from "./proxy.ts";

/*
 * The client library runs exec plugins, too, but it gives them no terminal and no deadline, cannot stop them, and never
 * renews credentials that do not expire.
 */

/** A plugin may wait until a person has logged in with a browser. */
export const PLUGIN_TIMEOUT_MS = 180_000;

const text = z
  .string()
  .nullish()
  .transform((value) => value || undefined);

const execCredential = z.object({
  kind: z.literal("ExecCredential"),
  apiVersion: z.string(),
  status: z.object({
    token: text,
    clientCertificateData: text,
    clientKeyData: text,
    expirationTimestamp: z.iso.datetime({ offset: true }).nullish(),
  }),
});

export type PluginCredentials = z.output<typeof execCredential>["status"];

/** Extension of a cluster that contains the configuration of its plugin. */
const CLUSTER_EXTENSION = "client.authentication.k8s.io/exec";

/** The exec plugin of a kubeconfig, with the credentials of its last run. */
export class ExecPlugin {
  readonly #config: ExecConfig;
  readonly #cluster: KubeconfigCluster;
  readonly #env: Environment;
  readonly #timeoutMs: number;
  #last: PluginCredentials | undefined;
  #running: Promise<PluginCredentials> | undefined;

  constructor(config: ExecConfig, cluster: KubeconfigCluster, env: Environment, timeoutMs: number) {
    this.#config = config;
    this.#cluster = cluster;
    this.#env = env;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Returns the credentials of the last run, or runs the plugin if they have expired or were discarded.
   *
   * @throws Error that says what is wrong with the plugin; the reason of the signal
   */
  credentials(signal: AbortSignal): Promise<PluginCredentials> {
    if (this.#last && !isExpired(this.#last)) return Promise.resolve(this.#last);
    // Connections that share the plugin must not prompt a person twice.
    this.#running ??= this.#run(signal).finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** Makes the plugin run again if these are still its credentials. */
  discard(credentials: PluginCredentials): void {
    if (this.#last === credentials) this.#last = undefined;
  }

  async #run(signal: AbortSignal): Promise<PluginCredentials> {
    const { command, args, apiVersion, installHint } = this.#config;
    const deadline = new Deadline(this.#timeoutMs, signal);
    try {
      const isInteractive = this.#isInteractive();
      const env = this.#environment(isInteractive);
      const output = await runPlugin({ command, args, env, isInteractive }, deadline.signal);
      this.#last = credentialsIn(output, apiVersion);
      return this.#last;
    } catch (cause) {
      signal.throwIfAborted();
      const why = deadline.signal.aborted
        ? `did not finish within ${this.#timeoutMs / 1000} s`
        : messageOf(cause);
      const hint = installHint && isMissing(cause) ? `: ${installHint.trim()}` : "";
      throw new Error(`its exec plugin ${command} ${why}${hint}`, { cause });
    } finally {
      deadline.end();
    }
  }

  #isInteractive(): boolean {
    const { interactiveMode } = this.#config;
    const isTerminal = isatty(0);
    if (interactiveMode === "Always" && !isTerminal) {
      throw new Error("asks for input (interactiveMode: Always), and standard input is not a terminal");
    }
    return isTerminal && interactiveMode !== "Never";
  }

  #environment(isInteractive: boolean): NodeJS.ProcessEnv {
    const { apiVersion, env, provideClusterInfo } = this.#config;
    const spec = {
      ...(provideClusterInfo ? { cluster: clusterInfo(this.#cluster) } : {}),
      interactive: isInteractive,
    };
    return {
      ...this.#env,
      ...Object.fromEntries(env.map(({ name, value }) => [name, value])),
      KUBERNETES_EXEC_INFO: JSON.stringify({ kind: "ExecCredential", apiVersion, spec }),
    };
  }
}

function clusterInfo(cluster: KubeconfigCluster): object {
  const { "certificate-authority": file, extensions, ...fields } = cluster;
  const authority = fields["certificate-authority-data"] ?? (file && readFileSync(file).toString("base64"));
  return {
    server: fields.server,
    "tls-server-name": fields["tls-server-name"],
    "insecure-skip-tls-verify": fields["insecure-skip-tls-verify"] || undefined,
    "certificate-authority-data": authority,
    "proxy-url": fields["proxy-url"],
    "disable-compression": fields["disable-compression"] || undefined,
    config: extensions.find(({ name }) => name === CLUSTER_EXTENSION)?.extension ?? null,
  };
}

/** The program of the plugin does not exist. */
function isMissing(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const isSpawn = "syscall" in error && String(error.syscall).startsWith("spawn");
  return (isSpawn && "code" in error && error.code === "ENOENT") || isMissing(error.cause);
}

function isExpired({ expirationTimestamp }: PluginCredentials): boolean {
  return expirationTimestamp != null && Date.parse(expirationTimestamp) <= Date.now();
}

function credentialsIn(output: string, apiVersion: string): PluginCredentials {
  const { success, data, error } = execCredential.safeParse(json(output));
  if (!success) {
    const [issue] = error.issues;
    const where = issue?.path.join(".") || "the output";
    throw new Error(`printed no ExecCredential: ${where}: ${issue?.message}`, { cause: error });
  }
  if (data.apiVersion !== apiVersion) {
    throw new Error(`printed credentials of ${data.apiVersion}, and the kubeconfig requests ${apiVersion}`);
  }
  const { token, clientCertificateData, clientKeyData } = data.status;
  if ((clientCertificateData === undefined) !== (clientKeyData === undefined)) {
    throw new Error("printed only one of clientCertificateData and clientKeyData");
  }
  if (token === undefined && clientCertificateData === undefined) {
    throw new Error("printed neither a token nor a client certificate");
  }
  return data.status;
}

function json(output: string): unknown {
  try {
    return JSON.parse(output);
  } catch {
    return undefined;
  }
}
