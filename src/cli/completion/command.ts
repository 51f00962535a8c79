import * as z from "zod";
import { oneOf } from "../../settings/values.ts";
import { argument } from "../argument.ts";
import { defineCommand } from "../command.ts";
import { SCRIPTS } from "./scripts.ts";

export const completion = defineCommand({
  name: "completion",
  summary: "print a script that completes commands, flags and values in a shell",
  details: "The script calls pipe-scaling, so it stays valid after an update.",
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
    io.out(SCRIPTS[shell]);
  },
});
