import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import { z } from "zod";
import { adminCall, explain, parseJson } from "./admin-client.ts";
import type { Cluster } from "./cluster.ts";

const tokenSchema = z.object({ status: z.object({ token: z.string().min(1) }) });

/** Long enough for a session of tests, a benchmark, or a demo that is left open. */
const LIFETIME_S = 24 * 3600;

/** A token by which a process acts as a ServiceAccount, which must exist. */
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
 * Writes a kubeconfig by which a process acts as a ServiceAccount, as it would in
 * a pod of the cluster, so that it may do just what its RBAC rules allow.
 *
 * The account must exist. The file is in the cluster's folder, readable by this
 * user alone, and goes with the cluster.
 *
 * @returns the file's path.
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

/** In one step: another process may read the file that is there already. */
function writeWhole(path: string, text: string): string {
  mkdirSync(join(path, ".."), { recursive: true, mode: 0o700 });
  const next = `${path}.${randomUUID()}`;
  writeFileSync(next, text, { mode: 0o600 });
  renameSync(next, path);
  return path;
}
