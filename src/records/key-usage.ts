import { recordLabels } from "./labels.ts";
import { nameProblem } from "./organization.ts";
import { instant, type Parsed, sizeProblem } from "./parse.ts";

const PREFIX = "key-usage-";

/** ConfigMap `key-usage-<organizationId>` with the resource ID of each used key and the time of its last use. */
export function keyUsageConfigMapName(organizationId: string): string {
  return `${PREFIX}${organizationId}`;
}

/** One entry of the ConfigMap. */
export const keyUsageEntry = instant.meta({
  description: "Time of the last request with the key from an allowed address, to the minute.",
});

export type KeyUsage = ReadonlyMap<string, Parsed<Date>>;

export function parseKeyUsage(objectName: string, values: Readonly<Record<string, string>> = {}): KeyUsage {
  const malformed = nameProblem(objectName, PREFIX) ?? sizeProblem(values);
  if (malformed) return new Map(Object.keys(values).map((keyId) => [keyId, malformed]));
  return new Map(
    Object.entries(values).map(([keyId, text]): [string, Parsed<Date>] => {
      const time = keyUsageEntry.safeParse(text);
      return [
        keyId,
        time.success
          ? { ok: true, value: time.data }
          : { ok: false, problem: `${keyId}: ${time.error.issues[0]?.message}` },
      ];
    }),
  );
}

export function keyUsageConfigMap(organizationId: string, used: ReadonlyMap<string, Date>) {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      name: keyUsageConfigMapName(organizationId),
      labels: recordLabels("key-usage", organizationId),
    },
    data: keyUsageData(used),
  };
}

export function keyUsageData(used: ReadonlyMap<string, Date>): Record<string, string> {
  return Object.fromEntries([...used].map(([keyId, time]) => [keyId, time.toISOString()]));
}
