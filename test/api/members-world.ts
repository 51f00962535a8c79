import type { ConfigMap } from "../../src/kube/objects.ts";
import { CONFIG_MAPS, objectPath } from "../../src/kube/paths.ts";
import { type Member, membersConfigMap } from "../../src/records/members.ts";
import type { World } from "./world.ts";

/** Users and their roles. */
export type Roles = Readonly<Record<string, string>>;

export function membersRecord(organizationId: string, roles: Roles) {
  const members = Object.entries(roles).map(([userId, role]): Member => {
    const joinedAt = new Date("2026-02-01T00:00:00Z");
    return { userId, name: "Ada", email: "ada@example.com", role, joinedAt };
  });
  return membersConfigMap(organizationId, members);
}

/** @param entries of the record as they are */
export async function addMembers(
  world: World,
  organizationId: string,
  roles: Roles,
  entries: Readonly<Record<string, string>> = {},
): Promise<void> {
  const record = membersRecord(organizationId, roles);
  await world.addRecord({ ...record, ...{ data: { ...record.data, ...entries } } });
}

/** Adds to the record that is there, as a person with kubectl would. */
export async function addMember(
  world: World,
  organizationId: string,
  userId: string,
  role: string,
): Promise<void> {
  const { data } = membersRecord(organizationId, { [userId]: role });
  await world.admin.json({
    method: "PATCH",
    path: membersPath(world, organizationId),
    patchType: "application/merge-patch+json",
    body: { data },
  });
}

export function membersPath(world: World, organizationId: string): string {
  return objectPath(CONFIG_MAPS, world.records, `members-${organizationId}`);
}

export function readMembers(world: World, organizationId: string): Promise<ConfigMap> {
  return world.admin.json<ConfigMap>({ path: membersPath(world, organizationId) });
}

export async function entriesOf(world: World, organizationId: string): Promise<string[]> {
  return Object.keys((await readMembers(world, organizationId)).data ?? {}).sort();
}
