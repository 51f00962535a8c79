#!/usr/bin/env node
import { KUBECTL_COMMANDS } from "./all-commands.ts";
import { KUBECTL_PLUGIN } from "./cli/command.ts";
import { runAsProcess } from "./cli/main-process.ts";

await runAsProcess(KUBECTL_PLUGIN, KUBECTL_COMMANDS);
