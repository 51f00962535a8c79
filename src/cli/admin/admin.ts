import { keyCommands } from "./keys.ts";
import { memberCommands } from "./members.ts";
import { organizationCommands } from "./organizations.ts";
import { serviceCommands } from "./services.ts";

/** Commands of the platform team on the records, with the permissions of its kubeconfig. */
export const admin = [...organizationCommands, ...serviceCommands, ...memberCommands, ...keyCommands];
