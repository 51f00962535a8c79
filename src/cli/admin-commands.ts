import { createKey, listKeys } from "./key.ts";
import { addMember } from "./member.ts";
import { createOrganization, listOrganizations } from "./organization.ts";
import type { CommandGroup } from "./program.ts";
import { createService, listServices } from "./service.ts";

/** What the platform team does to the records, with the rights of its kubeconfig. */
export const ADMIN_COMMANDS: readonly CommandGroup[] = [
  {
    name: "organization",
    summary: "create and list organizations",
    commands: [createOrganization, listOrganizations],
  },
  { name: "service", summary: "create and list services", commands: [createService, listServices] },
  { name: "member", summary: "add members to an organization", commands: [addMember] },
  { name: "key", summary: "create and list API keys", commands: [createKey, listKeys] },
];
