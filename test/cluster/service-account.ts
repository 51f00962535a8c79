import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import { z } from "zod";
import { adminCall, explain, parseJson } from "./admin-client.ts";
import type { Cluster } from "./cluster.ts";

const tokenSchema = z.object({ status: z.object({ token: z.string().min(1) }) });

/** Long enough for tests, benchmarks, and a demo that is left open. */
const LIFETIME_S = 24 * 3600;

/** A token for an existing ServiceAccount. */
async function tokenOf(cluster: Cluster, namespace: string, name: string): Promise<string> {
  const response = await adminCall(
    cluster,
    "POST",
    `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`,
    {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: { expirationSeconds: LIFETIME_S },
    },
  );
  if (response.status !== 201) {
    throw new Error(`no token for ServiceAccount ${namespace}/${name}: ${explain(response)}`);
  }
  return tokenSchema.parse(parseJson(response.body)).status.token;
}

/**
 * Writes a kubeconfig with the credentials of an existing ServiceAccount, so that a process has the same permissions as
 * in a pod. The file is in the folder of the cluster, and only this user can read it.
 *
 * @returns its path
 */
export async function serviceAccountKubeconfig(
  cluster: Cluster,
  namespace: string,
  name: string,
): Promise<string> {
  const token = await tokenOf(cluster, namespace, name);
  const user = `${namespace}-${name}`;
  return writeWhole(
    join(cluster.dir, "service-accounts", `${user}.kubeconfig`),
    stringify({
      apiVersion: "v1",
      kind: "Config",
      "current-context": user,
      clusters: [
        {
          name: cluster.name,
          cluster: {
            server: cluster.server,
            "certificate-authority-data": readFileSync(join(cluster.dir, "pki", "ca.crt"), "base64"),
          },
        },
      ],
      users: [{ name: user, user: { token } }],
      contexts: [{ name: user, context: { cluster: cluster.name, user, namespace } }],
    }),
  );
}

/** Writes atomically, because another process may be reading the file. */
function writeWhole(path: string, text: string): string {
  mkdirSync(join(path, ".."), { recursive: true, mode: 0o700 });
  const next = `${path}.${randomUUID()}`;
  writeFileSync(next, text, { mode: 0o600 });
  renameSync(next, path);
  return path;
}
