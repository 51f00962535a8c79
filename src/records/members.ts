import { stringify } from "yaml";
import * as z from "zod";
import { recordLabels } from "./labels.ts";
import { nameProblem } from "./organization.ts";
import { instant, nonEmpty, type Parsed, sizeProblem, yamlValue } from "./parse.ts";

/** Maximum size of the record, in bytes of keys and values: about 1500 members whose user IDs are UUIDs. */
export const MAX_MEMBERS_BYTES = 262_144;
/** Maximum size of the value of an entry, in bytes. Most have about 150. */
const MAX_ENTRY_BYTES = 2048;
/** After so many malformed entries, which take much longer to parse than others, no more entries are parsed. */
const MAX_MALFORMED = 20;

/** One entry of ConfigMap `members-<organizationId>`. */
export interface Member {
  readonly userId: string;
  readonly name: string;
  readonly email: string;
  readonly role: string;
  readonly joinedAt: Date;
}

const PREFIX = "members-";

export function membersConfigMapName(organizationId: string): string {
  return `${PREFIX}${organizationId}`;
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
  if (Buffer.byteLength(value) > MAX_ENTRY_BYTES) {
    return { ok: false, problem: `${key}: is longer than ${MAX_ENTRY_BYTES} bytes` };
  }
  const result = memberEntry.safeParse(value);
  if (!result.success) return { ok: false, problem: `${key}: ${result.error.issues[0]?.message}` };
  if (memberKey(result.data.userId) !== key)
    return { ok: false, problem: `${key}: is not the key of its userId` };
  return { ok: true, value: result.data };
}

/** The members by the keys of their entries. */
export type Members = ReadonlyMap<string, Parsed<Member>>;

/** A malformed entry affects only itself, unless there are many. */
export function parseMembers(objectName: string, values: Readonly<Record<string, string>> = {}): Members {
  let unread = nameProblem(objectName, PREFIX) ?? sizeProblem(values, MAX_MEMBERS_BYTES);
  let malformed = 0;
  const members = new Map<string, Parsed<Member>>();
  for (const [key, value] of Object.entries(values)) {
    const member = unread ?? parseMember(key, value);
    members.set(key, member);
    if (!member.ok) malformed += 1;
    if (malformed === MAX_MALFORMED) {
      const problem = `the record: entries after ${MAX_MALFORMED} malformed ones are not read`;
      unread ??= { ok: false, problem };
    }
  }
  return members;
}

/** Returns true if the entry is the only admin. A malformed entry does not count, because its role is unknown. */
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
