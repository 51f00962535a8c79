import { isCode, serverMessage } from "../../kube/errors.ts";
import type { Cluster } from "./cluster.ts";
import { checkCrd } from "./crd.ts";
import { checkInPlace } from "./in-place.ts";
import { checkPaused } from "./paused.ts";
import { checkPermissions } from "./permissions.ts";
import { checkPipes } from "./pipes.ts";
import { checkInstallations, checkLease } from "./processes.ts";
import { checkKeys, checkNamespaces, checkRecords } from "./references.ts";
import { note, type Result } from "./result.ts";
import { checkServer, serverFailure } from "./server.ts";

const CHECKS = [
  ["server", checkServer],
  ["crd", checkCrd],
  ["installation", checkInstallations],
  ["permissions", checkPermissions],
  ["lease", checkLease],
  ["records", checkRecords],
  ["keys", checkKeys],
  ["namespaces", checkNamespaces],
  ["pipes", checkPipes],
  ["in-place", checkInPlace],
  ["paused", checkPaused],
] as const satisfies readonly (readonly [name: string, run: (cluster: Cluster) => Promise<Result[]>])[];

export interface CheckResult extends Result {
  readonly check: (typeof CHECKS)[number][0];
}

/** Runs all checks. Writes nothing (access reviews are not stored), and skips what the kubeconfig may not read. */
export async function runChecks(cluster: Cluster): Promise<readonly CheckResult[]> {
  const results: CheckResult[] = [];
  for (const [check, run] of CHECKS) {
    try {
      results.push(...(await run(cluster)).map((result) => ({ ...result, check })));
    } catch (cause) {
      if (!isCode(cause, 403)) return [...results, { ...serverFailure(cluster, cause), check: "server" }];
      const message = `Not checked, a permission is missing: ${serverMessage(cause)}.`;
      // Several checks may need the same permission.
      if (results.some((result) => result.message === message)) continue;
      results.push({ ...note(message, "Use a kubeconfig that has this permission."), check });
    }
  }
  return results;
}
