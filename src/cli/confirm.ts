import { UsageError } from "../settings/option.ts";
import { CliError } from "./failure.ts";
import type { Io } from "./io.ts";
import { printable } from "./view/text.ts";

/**
 * Lets a command that takes something away go on: `--yes` was given, or somebody at a terminal agrees.
 *
 * @param sentence as in "Delete API key ci?"; it says all that would be gone
 * @throws CliError if the answer is no, UsageError if standard input is not a terminal
 */
export async function confirm(io: Io, yes: boolean, sentence: string): Promise<void> {
  if (yes) return;
  // In one line, whatever the names in it are: the person must see all of it.
  const question = printable(sentence);
  if (!io.terminal.input) {
    throw new UsageError(`${question} Standard input is not a terminal: give --yes to confirm.`);
  }
  const answer = await io.ask(`${question} [y/N] `);
  if (!/^\s*y(es)?\s*$/i.test(answer ?? "")) throw new CliError("Nothing was changed.");
}
