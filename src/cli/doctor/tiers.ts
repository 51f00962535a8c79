import { createHash } from "node:crypto";
import type { ConfigMap } from "../../kube/objects.ts";
import { CONFIG_MAPS, objectPath } from "../../kube/paths.ts";
import { parseTiers } from "../../records/tiers-file.ts";
import type { Cluster } from "./cluster.ts";
import type { Installation } from "./installation.ts";
import { error, FORCED_UPGRADE, ok, type Result, warning } from "./result.ts";

const KEY = "tiers.yaml";

const UPGRADE = `Set tiers in the values of the chart, then: ${FORCED_UPGRADE}. It restarts the pods if the tiers of the values have changed.`;

/** Checks that the tiers of the processes are valid and have not been edited since the last helm upgrade. */
export async function checkTiers(cluster: Cluster): Promise<Result[]> {
  const ours = await cluster.ownInstallations();
  // Both processes use the same ConfigMap.
  const byName = new Map(ours.map((each) => [`${each.namespace}/${each.tiers}`, each]));
  const results = [...byName.values()].map(async (installation): Promise<Result[]> => {
    const { namespace, tiers } = installation;
    if (tiers === undefined) return [];
    const object = await cluster.get<ConfigMap>(objectPath(CONFIG_MAPS, namespace, tiers));
    return [judge(installation, tiers, object)];
  });
  return (await Promise.all(results)).flat();
}

function judge({ namespace, tiersChecksum }: Installation, name: string, object?: ConfigMap): Result {
  const what = `The ConfigMap ${namespace}/${name} with the tiers`;
  const text = object?.data?.[KEY];
  if (text === undefined) {
    const state = object ? `has no key ${KEY}` : "does not exist";
    return error(`${what} ${state}, so new pods cannot start.`, UPGRADE);
  }
  const parsed = parseTiers(text);
  if (!parsed.ok) {
    return error(`${what} ${parsed.problem}, so new pods cannot start.`, UPGRADE);
  }
  const names = [...parsed.value.keys()].join(", ");
  if (tiersChecksum === undefined || tiersChecksum === checksumOf(text)) {
    return ok(`The tiers are valid: ${names}.`);
  }
  return warning(
    `${what} differs from the values of the chart: it was edited. Pods read it only when they start, so they may have different tiers, and the next upgrade fails or reverts the edit.`,
    UPGRADE,
  );
}

/** The chart omits the line break at the end, which YAML adds. */
function checksumOf(text: string): string {
  return createHash("sha256").update(text.replace(/\n$/, "")).digest("hex");
}
