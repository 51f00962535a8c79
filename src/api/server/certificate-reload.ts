import { type Clock, pause } from "../../runtime/clock.ts";
import { expirationOf, type TlsFiles } from "../../settings/tls-files.ts";
import type { Logger } from "../../telemetry/log.ts";

/**
 * Interval at which the contents of the files are compared. A watch of the files would lose them: the kubelet updates a
 * mounted Secret by swapping a symbolic link.
 */
const CHECK_MS = 5000;

export interface CertificateReloadOptions {
  readonly served: TlsFiles;
  /** @throws Error with a sentence for the user if the files cannot be served */
  readonly read: () => TlsFiles;
  /** For new connections; open connections keep their certificate. */
  readonly install: (files: TlsFiles) => void;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Installs the certificate from the files whenever they change, until the signal is aborted.
 *
 * The two files cannot be read atomically, and their writer may not be finished: an unusable pair is logged once and
 * read again later; until then the old certificate is served.
 */
export async function reloadCertificate(
  options: CertificateReloadOptions,
  signal: AbortSignal,
): Promise<void> {
  const { read, install, clock, log } = options;
  let { served } = options;
  let logged: string | undefined;
  while (!signal.aborted) {
    await pause(clock, CHECK_MS, signal);
    if (signal.aborted) break;
    try {
      const found = read();
      logged = undefined;
      if (found.cert.equals(served.cert) && found.key.equals(served.key)) continue;
      install(found);
      served = found;
      log.info({ notAfter: expirationOf(found) }, "serving a new certificate");
    } catch (err) {
      const problem = String(err);
      if (problem !== logged) log.warn({ err }, "the new certificate is unusable: keeping the old one");
      logged = problem;
    }
  }
}
