import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { messageOf } from "../kube/errors.ts";
import type { TlsSettings } from "./api.ts";
import { UsageError } from "./option.ts";

export interface TlsFiles {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/**
 * Returns the certificate for HTTPS, or `undefined` for plain HTTP.
 *
 * @throws Error with a sentence for the user
 */
export function readTlsFiles({ tlsCert, tlsKey }: TlsSettings): TlsFiles | undefined {
  if (tlsCert === undefined || tlsKey === undefined) return undefined;
  return requireUsable({ cert: read(tlsCert), key: read(tlsKey) });
}

/** Returns the expiration time of the server's own certificate, which is the first of the chain. */
export function expirationOf({ cert }: TlsFiles): Date {
  return new X509Certificate(cert).validToDate;
}

/** @throws UsageError with a sentence for the user */
export function requireUsable(files: TlsFiles): TlsFiles {
  try {
    createSecureContext(files);
    return files;
  } catch (cause) {
    throw new UsageError(
      `The TLS certificate and key are unusable: ${messageOf(cause)}. They must be PEM files that match.`,
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
