import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import * as z from "zod";
import type { Cluster } from "./cluster.ts";
import { reservePorts } from "./ports.ts";
import { apiServerReady } from "./ready.ts";
import { TcpProxy } from "./tcp-proxy.ts";

const NAME = "kube-apiserver-2";
const ETCD = "--etcd-servers=";
const PORT = "--secure-port=";

const configuration = z.object({
  components: z.array(z.object({ name: z.string(), args: z.array(z.string()) })),
});

export interface SecondApiServer {
  readonly port: number;
  /** Connection of the server to etcd. While it is frozen, the server responds with old state. */
  readonly etcdLink: TcpProxy;
}

/**
 * Starts another API server with the same etcd and the same certificate. Like the other processes of the cluster, it
 * ends with the cluster.
 */
export async function startSecondApiServer(cluster: Cluster): Promise<SecondApiServer> {
  const args = apiServerArgs(cluster);
  const etcd = new URL(args.find((each) => each.startsWith(ETCD))?.slice(ETCD.length) ?? "");
  const etcdLink = await TcpProxy.listen(Number(etcd.port));
  const { ports, release } = await reservePorts();
  const port = ports.apiServer;
  const program = join(cluster.dir, "bin", NAME);
  symlinkSync(cluster.binaries.path("kube-apiserver"), program);
  const log = openSync(join(cluster.dir, "logs", `${NAME}.log`), "a");
  const others = args.filter((each) => !each.startsWith(ETCD) && !each.startsWith(PORT));
  spawn(program, [...others, `${ETCD}http://127.0.0.1:${etcdLink.port}`, `${PORT}${port}`], {
    stdio: ["ignore", log, log],
    detached: true,
  }).unref();
  closeSync(log);
  const server = `https://127.0.0.1:${port}`;
  await apiServerReady({ dir: cluster.dir, server }, { timeoutMs: 30_000 });
  release();
  return { port, etcdLink };
}

function apiServerArgs({ dir }: Cluster): readonly string[] {
  const [first] = parseAllDocuments(readFileSync(join(dir, "kwok.yaml"), "utf8"));
  const { components } = configuration.parse(first?.toJS());
  return components.find(({ name }) => name === "kube-apiserver")?.args ?? [];
}
