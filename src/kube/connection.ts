import type { Dispatcher } from "undici";
import type { Access } from "./access.ts";
import { dispatcherTo } from "./dispatcher.ts";
import { SERVICE_ACCOUNT_DIR, serviceAccountAccess } from "./service-account.ts";

/** How long a token read from a file or an exec plugin is used before it is asked for again. */
const CREDENTIALS_FRESH_MS = 10_000;

/** Watches hold a connection each for minutes, so there must be room beside them. */
const MAX_CONNECTIONS = 128;

/**
 * Where the API server is and how to prove who we are. One pool of keep-alive connections serves
 * all calls: the client library would open a TLS connection for each (kubernetes-facts.md).
 */
export interface Connection {
  readonly server: string;
  /** Host of the proxy on the way, for people. */
  readonly proxy: string | undefined;
  readonly pool: Dispatcher;
  authorization(): Promise<string | undefined>;
  close(): Promise<void>;
}

/**
 * @param kubeconfig path of a kubeconfig; without one, the Pod's own ServiceAccount or the user's default
 * @param serviceAccount path of the folder with the Pod's token
 * @throws KubeConfigError
 */
export async function connect(
  kubeconfig: string | undefined,
  serviceAccount = SERVICE_ACCOUNT_DIR,
): Promise<Connection> {
  const access = await accessBy(kubeconfig, serviceAccount);
  const server = new URL(access.server);
  const { authorization, ...tls } = await access.credentials();
  const given = Object.fromEntries(Object.entries(tls).filter(([, value]) => value !== undefined));
  const pool = dispatcherTo(server.origin, access.route, {
    connections: MAX_CONNECTIONS,
    bodyTimeout: 0,
    // Through undici HTTP/2 costs three times the CPU (kubernetes-facts.md), and its streams, cut off by the
    // pool's end, throw errors that nobody can catch.
    allowH2: false,
    connect: { timeout: 5000, ...given },
  });
  let cached = { at: performance.now(), authorization };
  return {
    server: server.href.replace(/\/$/, ""),
    proxy: access.route?.host,
    pool,
    async authorization() {
      if (performance.now() - cached.at > CREDENTIALS_FRESH_MS) {
        const renewed = await access.credentials();
        cached = { at: performance.now(), authorization: renewed.authorization };
      }
      return cached.authorization;
    },
    close: () => pool.destroy(),
  };
}

async function accessBy(kubeconfig: string | undefined, serviceAccount: string): Promise<Access> {
  const { env } = process;
  const isChosen = kubeconfig !== undefined || env["KUBECONFIG"];
  const own = isChosen ? undefined : serviceAccountAccess(serviceAccount, env);
  if (own) return own;
  // In a Pod the client library, which costs a process some 15 MB, is never loaded.
  const { kubeconfigAccess } = await import("./kubeconfig.ts");
  return kubeconfigAccess(kubeconfig, env);
}
