import { UsageError } from "../settings/option.ts";
import { CliError } from "./failure.ts";
import type { Io } from "./io.ts";
import { printable } from "./view/text.ts";

/**
 * Asks before a destructive command, unless `--yes` was given.
 *
 * @param sentence as in "Delete API key ci?"; it names everything that is deleted
 * @throws CliError unless the answer is yes, UsageError if standard input is not a terminal
 */
export async function confirm(io: Io, yes: boolean, sentence: string): Promise<void> {
  if (yes) return;
  // Names may contain line breaks, and the whole question must be visible.
  const question = printable(sentence);
  if (!io.terminal.input) {
    throw new UsageError(`${question} Standard input is not a terminal. Confirm with --yes.`);
  }
  const answer = await io.ask(`${question} [y/N] `);
  if (!/^\s*y(es)?\s*$/i.test(answer ?? "")) throw new CliError("Nothing was changed.");
}
