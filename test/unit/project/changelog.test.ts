import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { REASONS } from "../../../src/api/cluster/reasons.ts";
import { OPERATIONS } from "../../../src/api/resources/operations.ts";
import { FALLBACK_REASONS } from "../../../src/crd/fallback-reasons.ts";
import { apiSettings } from "../../../src/settings/api.ts";
import { controllerSettings } from "../../../src/settings/controller.ts";
import { withoutUnit } from "../../../src/settings/option.ts";

const CHANGELOG = readFileSync(new URL("../../../CHANGELOG.md", import.meta.url), "utf8");

const settings = [...Object.keys(apiSettings), ...Object.keys(controllerSettings)].map(withoutUnit);
const names = new Set([...REASONS, ...FALLBACK_REASONS, ...settings, ...OPERATIONS.map(({ id }) => id)]);

/** The changelog describes the first version as a whole, without these names. Do not add to this list. */
const FIRST_VERSION: ReadonlySet<string> = new Set([
  "ContainerNotNamed",
  "ContainerNotRunning",
  "ContainerRestarts",
  "ContainerUnclear",
  "CpuLimitTooLow",
  "Deferred",
  "Deleting",
  "Failed",
  "FailedCreate",
  "FieldConflict",
  "Forbidden",
  "Infeasible",
  "MalformedRecord",
  "NoNodeHasRoom",
  "NoNodeLargeEnough",
  "NotResizedInPlace",
  "NotSettled",
  "NotSupported",
  "OutOfMemory",
  "Pending",
  "PodsNotLabeled",
  "ProgressDeadlineExceeded",
  "Progressing",
  "Refused",
  "ReplicaFailure",
  "ResizeError",
  "ResizeTimeout",
  "Restarted",
  "Reverted",
  "RolloutFailed",
  "RolloutTimeout",
  "Scaled",
  "SizeFromEnvironment",
  "SizeFromPercentage",
  "SizeNotRequested",
  "Suspended",
  "TemplateChanged",
  "TierLimited",
  "UnknownOrganization",
  "UnknownService",
  "UnknownTier",
  "Unschedulable",
  "WaitingForOwner",
  "WaitingForWindow",
  "WriteFailed",
  "WrongNamespace",
  "disableDocsPage",
  "drainDelay",
  "dryRun",
  "endPipeScalingBoost",
  "failedLogins",
  "getBackupConfiguration",
  "getOrganizationMetrics",
  "getPipeScaling",
  "getPipeScalingBoost",
  "getPipeScalingHistory",
  "getPipeScalingLimits",
  "getPipeScalingProgress",
  "getServiceMetrics",
  "host",
  "identity",
  "keepAlive",
  "kubeconfig",
  "listKeys",
  "listMembers",
  "listOrganizations",
  "listServices",
  "logLevel",
  "maxBoost",
  "maxCacheAge",
  "maxConcurrentRollouts",
  "maximumCores",
  "metricsAuthentication",
  "namespace",
  "opsPort",
  "otlpEndpoint",
  "pathAliases",
  "pipeNamespaces",
  "plainHttp",
  "port",
  "rateLimit",
  "rateWindow",
  "removeMember",
  "resizeStrategy",
  "rolloutTimeout",
  "startPipeScalingBoost",
  "tiersFile",
  "tlsCert",
  "tlsKey",
  "toleratedResizers",
  "trustedProxies",
  "updateBackupConfiguration",
  "updatePipeScaling",
]);

function unmentioned(text: string): readonly string[] {
  return [...names].filter((name) => !FIRST_VERSION.has(name) && !new RegExp(`\\b${name}\\b`).test(text));
}

describe("CHANGELOG.md", () => {
  it("mentions each reason, setting and operation that the first version does not have", () => {
    const problems = unmentioned(CHANGELOG).map(
      (name) =>
        `CHANGELOG.md does not mention ${name}: add a line with this word under "Added", then run npm run test:unit.`,
    );
    expect(problems.join("\n")).toBe("");
  });

  it("exempts only names that exist", () => {
    expect([...FIRST_VERSION].filter((name) => !names.has(name))).toEqual([]);
  });
});
