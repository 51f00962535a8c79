import type { ConfigMap } from "../../src/kube/objects.ts";
import { CONFIG_MAPS, objectPath } from "../../src/kube/paths.ts";
import { type Member, membersConfigMap } from "../../src/records/members.ts";
import type { ApiEnvironment } from "./environment.ts";

/** Users and their roles. */
export type Roles = Readonly<Record<string, string>>;

export function membersRecord(organizationId: string, roles: Roles) {
  const members = Object.entries(roles).map(([userId, role]): Member => {
    const joinedAt = new Date("2026-02-01T00:00:00Z");
    return { userId, name: "Ada", email: "ada@example.com", role, joinedAt };
  });
  return membersConfigMap(organizationId, members);
}

/** @param entries raw entries to add to the record */
export async function addMembers(
  environment: ApiEnvironment,
  organizationId: string,
  roles: Roles,
  entries: Readonly<Record<string, string>> = {},
): Promise<void> {
  const record = membersRecord(organizationId, roles);
  await environment.addRecord({ ...record, data: { ...record.data, ...entries } });
}

/** Adds a member to the existing record, like a user with kubectl. */
export async function addMember(
  environment: ApiEnvironment,
  organizationId: string,
  userId: string,
  role: string,
): Promise<void> {
  const { data } = membersRecord(organizationId, { [userId]: role });
  await environment.admin.json({
    method: "PATCH",
    path: membersPath(environment, organizationId),
    patchType: "application/merge-patch+json",
    body: { data },
  });
}

export function membersPath(environment: ApiEnvironment, organizationId: string): string {
  return objectPath(CONFIG_MAPS, environment.records, `members-${organizationId}`);
}

export function readMembers(environment: ApiEnvironment, organizationId: string): Promise<ConfigMap> {
  return environment.admin.json<ConfigMap>({ path: membersPath(environment, organizationId) });
}

export async function entriesOf(environment: ApiEnvironment, organizationId: string): Promise<string[]> {
  return Object.keys((await readMembers(environment, organizationId)).data ?? {}).sort();
}
