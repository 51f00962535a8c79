import { isCode } from "../../kube/errors.ts";
import { checkArgoRollouts } from "./argo-rollouts.ts";
import type { Cluster } from "./cluster.ts";
import { checkCrd } from "./crd.ts";
import { checkInPlace } from "./in-place.ts";
import { checkInjected } from "./injected.ts";
import { checkLabels } from "./labels.ts";
import { checkHolder, checkLease } from "./lease.ts";
import { checkLiteralSizes } from "./literal-sizes.ts";
import { checkMaximumSize } from "./maximum-size.ts";
import { checkPaused } from "./paused.ts";
import { checkPermissions } from "./permissions.ts";
import { checkPipes } from "./pipes.ts";
import { checkPodSizes } from "./pod-sizes.ts";
import { checkPolicies } from "./policies.ts";
import { checkInstallations } from "./processes.ts";
import { checkKeys, checkNamespaces, checkRecords, checkServices } from "./references.ts";
import { notChecked, type Result } from "./result.ts";
import { checkServer, serverFailure } from "./server.ts";
import { checkTiers } from "./tiers.ts";
import { checkTls } from "./tls.ts";
import { checkWorkloads } from "./workloads.ts";

const CHECKS = [
  ["server", checkServer],
  ["crd", checkCrd],
  ["installation", checkInstallations],
  ["permissions", checkPermissions],
  ["policies", checkPolicies],
  ["tiers", checkTiers],
  ["maximum-size", checkMaximumSize],
  ["tls", checkTls],
  ["lease", checkLease],
  ["holder", checkHolder],
  ["records", checkRecords],
  ["keys", checkKeys],
  ["namespaces", checkNamespaces],
  ["services", checkServices],
  ["pipes", checkPipes],
  ["labels", checkLabels],
  ["workloads", checkWorkloads],
  ["argo-rollouts", checkArgoRollouts],
  ["pod-sizes", checkPodSizes],
  ["literal-sizes", checkLiteralSizes],
  ["in-place", checkInPlace],
  ["injected", checkInjected],
  ["paused", checkPaused],
] as const satisfies readonly (readonly [name: string, run: (cluster: Cluster) => Promise<Result[]>])[];

export interface CheckResult extends Result {
  readonly check: (typeof CHECKS)[number][0];
}

/**
 * Runs all checks, unless a request fails with an error other than 403. Skips what the kubeconfig may not read, and
 * writes nothing (access reviews are not stored).
 */
export async function runChecks(cluster: Cluster): Promise<readonly CheckResult[]> {
  const results: CheckResult[] = [];
  for (const [check, run] of CHECKS) {
    try {
      results.push(...(await run(cluster)).map((result) => ({ ...result, check })));
    } catch (cause) {
      if (!isCode(cause, 403)) return [...results, { ...serverFailure(cluster, cause), check: "server" }];
      results.push({ ...notChecked(cause), check });
    }
  }
  // Several checks may need the same permission.
  return results.filter(
    ({ message }, index) => results.findIndex((each) => each.message === message) === index,
  );
}
