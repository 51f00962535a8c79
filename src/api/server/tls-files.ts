import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { isLoopback } from "../../kube/loopback.ts";
import type { TlsSettings } from "../../settings/api.ts";

export interface TlsFiles {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/**
 * The certificate to serve HTTPS with, or `undefined` for plain HTTP. Every request carries a secret, so plain HTTP
 * leaves this machine only if the operator says that TLS ends upstream.
 *
 * @throws Error with a sentence that says what to do
 */
export function readTlsFiles(settings: TlsSettings): TlsFiles | undefined {
  const { host, plainHttp, tlsCert, tlsKey } = settings;
  if (tlsCert !== undefined && tlsKey !== undefined) {
    return requireUsable({ cert: read(tlsCert), key: read(tlsKey) });
  }
  if (tlsCert !== undefined || tlsKey !== undefined) {
    throw new Error("TLS needs both a certificate and its private key: give both files or neither.");
  }
  if (plainHttp || isLoopback(host)) return undefined;
  throw new Error(
    `Plain HTTP on ${host} would send key secrets in clear: give a TLS certificate and key, or say with the plain HTTP setting that TLS ends upstream.`,
  );
}

function requireUsable(files: TlsFiles): TlsFiles {
  try {
    createSecureContext(files);
    return files;
  } catch (cause) {
    throw new Error(
      `The TLS certificate and key cannot be used: ${messageOf(cause)}. They must be PEM, and belong together.`,
      { cause },
    );
  }
}

function read(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new Error(`The TLS file ${path} cannot be read: ${messageOf(cause)}.`, { cause });
  }
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
