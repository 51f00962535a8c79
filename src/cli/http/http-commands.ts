import type { CommandDefinition, CommandGroup } from "../command.ts";
import { backup } from "./backup.ts";
import { keys } from "./keys.ts";
import { members } from "./members.ts";
import { organizations } from "./organizations.ts";
import { profile } from "./profile.ts";
import { scaling } from "./scaling.ts";
import { services } from "./services.ts";

/** What a customer does through the HTTP API, with a key. */
export const HTTP_COMMANDS: readonly CommandDefinition[] = [organizations, services, keys];
export const HTTP_GROUPS: readonly CommandGroup[] = [scaling, backup, members, profile];
