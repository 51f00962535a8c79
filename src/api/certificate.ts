import { X509Certificate } from "node:crypto";
import { type Clock, pause } from "../runtime/clock.ts";
import type { Logger } from "../telemetry/log.ts";
import type { TlsFiles } from "./transport.ts";

/** How often the files are looked at. Their content is: a link that is swapped changes no time of a file. */
const CHECK_MS = 5000;

export interface CertificateOptions {
  readonly served: TlsFiles;
  /** @throws Error with a sentence if what is there cannot be served */
  readonly read: () => TlsFiles;
  /** For connections to come; those that there are live on. */
  readonly install: (files: TlsFiles) => void;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Serves the certificate that is in the files, whenever they change, until the signal is aborted.
 *
 * The two files are not read in one instant, and whoever writes them may be half way through: a pair that
 * cannot be served is told once, and looked at again; until then the one before it is served.
 */
export async function followCertificate(options: CertificateOptions, signal: AbortSignal): Promise<void> {
  const { read, install, clock, log } = options;
  let { served } = options;
  let told: string | undefined;
  while (!signal.aborted) {
    await pause(clock, CHECK_MS, signal);
    if (signal.aborted) break;
    try {
      const found = read();
      told = undefined;
      if (found.cert.equals(served.cert) && found.key.equals(served.key)) continue;
      install(found);
      served = found;
      log.info({ notAfter: new X509Certificate(found.cert).validTo }, "serving a new certificate");
    } catch (err) {
      const problem = String(err);
      if (problem !== told) log.warn({ err }, "the new certificate cannot be served: keeping the old one");
      told = problem;
    }
  }
}
