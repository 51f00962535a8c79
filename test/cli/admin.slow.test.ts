import { describeAdminCommands } from "./admin-commands.ts";

describeAdminCommands("in a pipe");
