#!/usr/bin/env node
import { COMMANDS } from "./all-commands.ts";
import { PROGRAM } from "./cli/command.ts";
import { runAsProcess } from "./cli/main-process.ts";

await runAsProcess(PROGRAM, COMMANDS);
