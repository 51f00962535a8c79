import { describeAdminCommands } from "./admin-commands.ts";

describeAdminCommands("on a terminal");
