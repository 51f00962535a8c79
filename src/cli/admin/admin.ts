import type { CommandGroup } from "../command.ts";
import { key } from "./keys.ts";
import { member } from "./members.ts";
import { organization } from "./organizations.ts";
import { service } from "./services.ts";

/** Commands of the platform team on the records, with the permissions of its kubeconfig. */
export const admin: CommandGroup = {
  name: "admin",
  summary: "manage organizations, services, members and API keys",
  commands: [organization, service, member, key],
};
