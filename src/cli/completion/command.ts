import * as z from "zod";
import { oneOf } from "../../settings/values.ts";
import { argument } from "../argument.ts";
import { type CommandDefinition, defineCommand } from "../command.ts";
import type { ProgramSpec } from "../program.ts";
import { bashScript } from "./bash.ts";
import { fishScript } from "./fish.ts";
import { placesOf } from "./places.ts";
import { zshScript } from "./zsh.ts";

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript };

/** @param program all that can be completed, asked for when a script is */
export function completionCommand(program: () => ProgramSpec): CommandDefinition {
  return defineCommand({
    name: "completion",
    summary: "print a script that completes commands, flags and values in a shell",
    details: "It holds all that it needs, and never calls this program: print it again after an update.",
    examples: [
      "completion bash >> ~/.bashrc",
      "completion zsh > ~/.zfunc/_pipe-scaling    # a folder of fpath",
      "completion fish > ~/.config/fish/completions/pipe-scaling.fish",
    ],
    arguments: z.object({
      shell: argument(oneOf("bash", "zsh", "fish"), { description: "bash, zsh or fish" }),
    }),
    options: z.object({}),
    async run({ shell }, io) {
      io.out(SCRIPTS[shell](placesOf(program())));
    },
  });
}
