import { stringify } from "yaml";
import * as z from "zod";
import { recordLabels } from "./labels.ts";
import { instant, nonEmpty, type Parsed, yamlValue } from "./parse.ts";

/** One entry of ConfigMap `members-<organizationId>`. */
export interface Member {
  readonly userId: string;
  readonly name: string;
  readonly email: string;
  readonly role: string;
  readonly joinedAt: Date;
}

export function membersConfigMapName(organizationId: string): string {
  return `members-${organizationId}`;
}

/** Encodes a userId as a key of a ConfigMap: every byte outside `[-.a-zA-Z0-9]` becomes `_HH`. */
export function memberKey(userId: string): string {
  return [...Buffer.from(userId, "utf8")]
    .map((byte) => {
      const character = String.fromCharCode(byte);
      return /[-.a-zA-Z0-9]/.test(character)
        ? character
        : `_${byte.toString(16).padStart(2, "0").toUpperCase()}`;
    })
    .join("");
}

/** One entry of the ConfigMap. */
export const memberEntry = yamlValue(
  z.object({
    userId: nonEmpty.meta({
      description: "ID of the user, in any form; it must match the key of the entry.",
    }),
    name: z.string().meta({ description: "Name of the user." }),
    email: z.string().meta({ description: "Email address of the user. It is not checked." }),
    role: nonEmpty.meta({
      description: "Role of the user. The last member with `admin` cannot be removed through the API.",
    }),
    joinedAt: instant.meta({ description: "Time at which the user joined." }),
  }),
).meta({ description: "One member of the organization." });

export function parseMember(key: string, value: string): Parsed<Member> {
  const result = memberEntry.safeParse(value);
  if (!result.success) return { ok: false, problem: `${key}: ${result.error.issues[0]?.message}` };
  if (memberKey(result.data.userId) !== key)
    return { ok: false, problem: `${key}: is not the key of its userId` };
  return { ok: true, value: result.data };
}

/** Parses the members by the keys of their entries. A malformed entry affects only itself. */
export type Members = ReadonlyMap<string, Parsed<Member>>;

export function parseMembers(values: Readonly<Record<string, string>> | undefined): Members {
  return new Map(
    Object.entries(values ?? {}).map(([key, value]): [string, Parsed<Member>] => [
      key,
      parseMember(key, value),
    ]),
  );
}

/** Returns true if the entry is the only admin. A malformed entry does not count, because it gives no permissions. */
export function isLastAdmin(members: Members, key: string): boolean {
  const admins = [...members].filter(([, member]) => member.ok && member.value.role === "admin");
  return admins.length === 1 && admins[0]?.[0] === key;
}

export function formatMember(member: Member): string {
  return stringify({ ...member, joinedAt: member.joinedAt.toISOString() });
}

export function membersConfigMap(organizationId: string, members: readonly Member[]) {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      name: membersConfigMapName(organizationId),
      labels: recordLabels("members", organizationId),
    },
    data: Object.fromEntries(members.map((member) => [memberKey(member.userId), formatMember(member)])),
  };
}
