import type { CommandGroup } from "../command.ts";
import { createKey } from "./key-create.ts";
import { rotateKey } from "./key-rotate.ts";
import { updateKey } from "./key-update.ts";
import { deleteKey, disableKey, enableKey, listKeys, showKey } from "./keys.ts";
import { addMember, listMembers, removeMember } from "./members.ts";
import { deleteOrganization } from "./organization-delete.ts";
import {
  createOrganization,
  listOrganizations,
  showOrganization,
  updateOrganization,
} from "./organizations.ts";
import { rollbackService } from "./service-rollback.ts";
import { createService, deleteService, listServices, showService, updateService } from "./services.ts";

const groups: readonly CommandGroup[] = [
  {
    name: "organization",
    summary: "manage organizations",
    commands: [
      createOrganization,
      listOrganizations,
      showOrganization,
      updateOrganization,
      deleteOrganization,
    ],
  },
  {
    name: "service",
    summary: "manage services, and roll back their size",
    commands: [createService, listServices, showService, updateService, rollbackService, deleteService],
  },
  {
    name: "member",
    summary: "manage the members of an organization",
    commands: [addMember, listMembers, removeMember],
  },
  {
    name: "key",
    summary: "manage API keys, and rotate their secrets",
    commands: [createKey, listKeys, showKey, updateKey, rotateKey, disableKey, enableKey, deleteKey],
  },
];

/** Commands of the platform team on the records, with the permissions of its kubeconfig. */
export const admin: CommandGroup = {
  name: "admin",
  summary: "manage organizations, services, members and API keys",
  commands: groups,
};
