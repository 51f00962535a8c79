import type { CommandGroup } from "../command.ts";
import { createKey } from "./key/create.ts";
import { deleteKey } from "./key/delete.ts";
import { listKeys } from "./key/list.ts";
import { rotateKey } from "./key/rotate.ts";
import { showKey } from "./key/show.ts";
import { disableKey, enableKey } from "./key/state.ts";
import { updateKey } from "./key/update.ts";
import { addMember } from "./member/add.ts";
import { listMembers } from "./member/list.ts";
import { removeMember } from "./member/remove.ts";
import { createOrganization } from "./organization/create.ts";
import { deleteOrganization } from "./organization/delete.ts";
import { listOrganizations } from "./organization/list.ts";
import { showOrganization } from "./organization/show.ts";
import { updateOrganization } from "./organization/update.ts";
import { createService } from "./service/create.ts";
import { deleteService } from "./service/delete.ts";
import { listServices } from "./service/list.ts";
import { rollbackService } from "./service/rollback.ts";
import { showService } from "./service/show.ts";
import { updateService } from "./service/update.ts";

const groups: readonly CommandGroup[] = [
  {
    name: "organization",
    summary: "create, look at, change and delete organizations",
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
    summary: "create, look at, change, roll back and delete services",
    commands: [createService, listServices, showService, updateService, rollbackService, deleteService],
  },
  {
    name: "member",
    summary: "add, list and remove members of an organization",
    commands: [addMember, listMembers, removeMember],
  },
  {
    name: "key",
    summary: "create, look at, change, rotate and delete API keys",
    commands: [createKey, listKeys, showKey, updateKey, rotateKey, disableKey, enableKey, deleteKey],
  },
];

/** Commands of the platform team on the records, with the permissions of its kubeconfig. */
export const admin: CommandGroup = {
  name: "admin",
  summary: "manage organizations, services, members and API keys",
  commands: groups,
};
