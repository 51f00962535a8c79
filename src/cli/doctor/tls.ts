import { X509Certificate } from "node:crypto";
import { messageOf } from "../../kube/errors.ts";
import type { Secret } from "../../kube/objects.ts";
import { objectPath, SECRETS } from "../../kube/paths.ts";
import { expirationOf, requireUsable } from "../../settings/tls-files.ts";
import { roughly } from "../view/time.ts";
import type { Cluster } from "./cluster.ts";
import { error, ok, type Result, warning } from "./result.ts";

const DAY_MS = 86_400_000;

/** Renewals happen well before, and the alert of the chart has the same threshold by default. */
const SOON_MS = 14 * DAY_MS;
/** Part of the validity that is left when a short certificate should have been renewed: cert-manager does at a third. */
const SOON_PART = 1 / 5;

/** Checks the certificate with which the API serves. */
export async function checkTls(cluster: Cluster): Promise<Result[]> {
  const installations = await cluster.installations();
  const ours = installations.filter(({ records }) => records === cluster.options.records);
  const results = ours.map(async ({ namespace, name, tlsSecret }): Promise<Result[]> => {
    if (tlsSecret === undefined) return [];
    const secret = await cluster.get<Secret>(objectPath(SECRETS, namespace, tlsSecret));
    const create = creationOf(tlsSecret, namespace, name);
    return [judge(namespace, tlsSecret, secret, create, cluster.options.clock.now())];
  });
  return (await Promise.all(results)).flat();
}

/** Helm deletes the Secret that the chart creates when the values use another certificate. */
function creationOf(name: string, namespace: string, deployment: string): string {
  if (name === `${deployment}-tls`) {
    return "helm upgrade, which creates a self-signed certificate. To use your own, store it in a Secret of another name, and set api.tls.secretName to that name.";
  }
  return `kubectl create secret tls ${name} --namespace ${namespace} --cert <file> --key <file>; cert-manager creates it by itself.`;
}

function judge(
  namespace: string,
  name: string,
  secret: Secret | undefined,
  create: string,
  nowMs: number,
): Result {
  const what = `The TLS Secret ${namespace}/${name} of the API`;
  if (!secret) {
    return error(`${what} does not exist, so new pods of the API cannot start.`, create);
  }
  const replace = `Replace it, and the API serves the new certificate within seconds: kubectl delete secret ${name} --namespace ${namespace}, then ${create}`;
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
  const leftMs = expirationOf({ cert, key }).getTime() - nowMs;
  const certificate = `The certificate in the TLS Secret ${namespace}/${name} of the API`;
  if (leftMs <= 0)
    return error(`${certificate} expired ${roughly(-leftMs)} ago, so clients reject it.`, replace);
  const expires = `expires in ${roughly(leftMs)}`;
  if (leftMs <= Math.min(SOON_MS, validityMsOf(cert) * SOON_PART))
    return warning(`${certificate} ${expires}, and nothing has renewed it.`, replace);
  return ok(`The TLS certificate of the API is usable; it ${expires}.`);
}

function validityMsOf(cert: Buffer): number {
  const { validFromDate, validToDate } = new X509Certificate(cert);
  return validToDate.getTime() - validFromDate.getTime();
}
