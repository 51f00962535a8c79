import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { isIPv6 } from "node:net";
import { join } from "node:path";
import type { Access } from "./access.ts";
import { KubeConfigError } from "./errors.ts";

/** Where the kubelet puts a Pod's token and the cluster's CA certificate. */
export const SERVICE_ACCOUNT_DIR = "/var/run/secrets/kubernetes.io/serviceaccount";

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The API server of the cluster that this runs in, as the Pod's own ServiceAccount.
 *
 * @returns `undefined` outside of a Pod, and in one that has no token
 */
export function serviceAccountAccess(dir: string, env: Environment): Access | undefined {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = "443" } = env;
  if (!host || !existsSync(join(dir, "token"))) return undefined;
  const origin = `The service account in ${dir}`;
  return {
    origin,
    // A proxy that is meant for what is outside must not come between.
    route: undefined,
    server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
    credentials: async () => {
      try {
        const [ca, token] = await Promise.all([
          readFile(join(dir, "ca.crt")),
          readFile(join(dir, "token"), "utf8"),
        ]);
        return { ca, authorization: `Bearer ${token.trim()}` };
      } catch (cause) {
        const why = cause instanceof Error ? cause.message : String(cause);
        throw new KubeConfigError(`${origin} cannot be read: ${why}`, { cause });
      }
    },
  };
}
