import { X509Certificate } from "node:crypto";
import { messageOf } from "../../kube/errors.ts";
import type { Secret } from "../../kube/objects.ts";
import { objectPath, SECRETS } from "../../kube/paths.ts";
import { requireUsable } from "../../settings/tls-files.ts";
import { roughly } from "../view/time.ts";
import type { Cluster } from "./cluster.ts";
import { MAX_SKEW_MS } from "./max-skew.ts";
import { error, ok, type Result, warning } from "./result.ts";

const DAY_MS = 86_400_000;

/** Renewals happen well before, and the alert of the chart has the same threshold by default. */
const SOON_MS = 14 * DAY_MS;
/** Threshold for short certificates, as a part of their validity. cert-manager renews when a third is left. */
const SOON_PART = 1 / 5;

/** Checks the TLS certificate of the API. */
export async function checkTls(cluster: Cluster): Promise<Result[]> {
  const ours = await cluster.ownInstallations();
  const results = ours.map(async ({ namespace, name, tlsSecret }): Promise<Result[]> => {
    if (tlsSecret === undefined) return [];
    const secret = await cluster.get<Secret>(objectPath(SECRETS, namespace, tlsSecret));
    return [judge(cluster, { namespace, name: tlsSecret, deployment: name }, secret)];
  });
  return (await Promise.all(results)).flat();
}

/** The Secret that the API mounts; it may be missing. */
interface TlsSecret {
  readonly namespace: string;
  readonly name: string;
  /** The Deployment of the API. */
  readonly deployment: string;
}

/**
 * Returns how to create the Secret. The chart creates `<deployment>-tls`, and helm deletes it when the values name
 * another certificate. A Secret of the user can have the same name, but not the label of helm.
 */
function creationOf(
  cluster: Cluster,
  { namespace, name, deployment }: TlsSecret,
  secret: Secret | undefined,
): string {
  const { labels } = secret?.metadata ?? {};
  const mayBeOfHelm = !secret || labels?.["app.kubernetes.io/managed-by"] === "Helm";
  if (name === `${deployment}-tls` && mayBeOfHelm) {
    return "helm upgrade, which creates a self-signed certificate. To use your own, store it in a Secret of another name, and set api.tls.secretName to that name.";
  }
  const command = cluster.kubectl(
    `create secret tls ${name} --namespace ${namespace} --cert <file> --key <file>`,
  );
  return `\`${command}\`; cert-manager creates it by itself.`;
}

/** The cause of a failure is often not in the status of a Certificate, but in that of its request or its issuer. */
const CERT_MANAGER_KINDS = ["certificates", "certificaterequests", "issuers", "clusterissuers"].map(
  (plural) => `${plural}.cert-manager.io`,
);

/** How to replace a Secret that exists. cert-manager does so by itself, unless something keeps it from that. */
function replacementOf(cluster: Cluster, tls: TlsSecret, secret: Secret): string {
  const { namespace, name } = tls;
  const deletion = cluster.kubectl(`delete secret ${name} --namespace ${namespace}`);
  if (secret.metadata.annotations?.["cert-manager.io/certificate-name"] !== undefined) {
    const describe = cluster.kubectl(`describe ${CERT_MANAGER_KINDS.join(",")} --namespace ${namespace}`);
    return `To find out why cert-manager has not replaced it: \`${describe}\`; to have it issued anew: ${deletion}`;
  }
  const create = creationOf(cluster, tls, secret);
  return `Replace it, and the API serves the new certificate within about a minute: \`${deletion}\`, then ${create}`;
}

function judge(cluster: Cluster, tls: TlsSecret, secret: Secret | undefined): Result {
  const { namespace, name } = tls;
  const what = `The TLS Secret ${namespace}/${name} of the API`;
  if (!secret) {
    return error(
      `${what} does not exist, so new pods of the API cannot start.`,
      creationOf(cluster, tls, secret),
    );
  }
  const replace = replacementOf(cluster, tls, secret);
  const [cert, key] = ["tls.crt", "tls.key"].map((each) => Buffer.from(secret.data?.[each] ?? "", "base64"));
  if (!cert?.length || !key?.length) {
    const missing = cert?.length ? "tls.key" : "tls.crt";
    return error(`${what} has no ${missing}, so the API cannot use it.`, replace);
  }
  try {
    requireUsable({ cert, key });
  } catch (cause) {
    const why = messageOf(cause instanceof Error ? cause.cause : cause);
    return error(
      `${what} is unusable: ${why}. It needs a certificate and its key, both in PEM format.`,
      replace,
    );
  }
  const nowMs = cluster.options.clock.now();
  const { validFromDate, validToDate } = new X509Certificate(cert);
  const leftMs = validToDate.getTime() - nowMs;
  const untilValidMs = validFromDate.getTime() - nowMs;
  const certificate = `The certificate in the TLS Secret ${namespace}/${name} of the API`;
  if (leftMs <= 0)
    return error(`${certificate} expired ${roughly(-leftMs)} ago, so clients reject it.`, replace);
  if (untilValidMs > MAX_SKEW_MS)
    return error(`${certificate} becomes valid in ${roughly(untilValidMs)}, so clients reject it.`, replace);
  const expires = `expires in ${roughly(leftMs)}`;
  const validityMs = validToDate.getTime() - validFromDate.getTime();
  if (leftMs <= Math.min(SOON_MS, validityMs * SOON_PART))
    return warning(`${certificate} ${expires}, and nothing has renewed it.`, replace);
  return ok(`The TLS certificate of the API is usable; it ${expires}.`);
}
