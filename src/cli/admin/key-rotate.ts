import { isDeepStrictEqual } from "node:util";
import { type ApiKey, formatSecretHashes, newCredentials, sha256 } from "../../records/api-key.ts";
import { UsageError } from "../../settings/option.ts";
import { confirm } from "../confirm.ts";
import { CliError } from "../failure.ts";
import { outputOption, type Place, programCommand, switchOption, yesOption } from "../options.ts";
import { printOne } from "../output.ts";
import { recordsCommand } from "./command.ts";
import { KEYS } from "./kinds.ts";
import { keyArgument } from "./options.ts";
import { withFoundOutcome } from "./retry.ts";

export const rotate = recordsCommand({
  name: "admin key rotate",
  summary: "rotate the secret of an API key without downtime",
  details:
    "Adds a second secret and prints it. It cannot be shown again. Both secrets work with the same key ID. When all\n" +
    "clients use the new secret, remove the old one with --finish. To keep the old one instead, use --cancel.",
  examples: [
    "admin key rotate <uuid>",
    "admin key rotate <uuid> --finish",
    "admin key rotate <uuid> --cancel --yes",
  ],
  options: {
    ...keyArgument,
    finish: switchOption("drop the older secret"),
    cancel: switchOption("drop the newer secret"),
    ...yesOption,
    ...outputOption,
  },
  check({ finish, cancel }) {
    if (finish && cancel)
      throw new UsageError("--finish and --cancel cannot be combined. Specify one of them.");
  },
  async run(records, { key: id, finish, cancel, yes, output }, io) {
    const { place } = records;
    if (finish || cancel) {
      const key = await KEYS.require(records, id);
      const kept = keptSecret(place, key, finish);
      const what = `the ${finish ? "older" : "newer"} secret of API key ${key.name} (${id})`;
      await confirm(io, yes, `Drop ${what}, and reject clients that still use it?`);
      await KEYS.change(records, id, (latest) => {
        // Another person can also have replaced the secret that is dropped, and already given it to the clients.
        if (isDeepStrictEqual(latest.secretHashes, key.secretHashes))
          return { secretHash: formatSecretHashes([kept]) };
        throw new CliError(
          `The secrets of API key ${id} were changed by another writer, so this command changed nothing. Check them, then run it again.`,
        );
      });
      io.err(`Dropped ${what}.\n`);
      return;
    }
    const { keySecret } = newCredentials();
    /** Returns the key if it has the new secret. Works after Ctrl-C, too, so that the secret is not lost. */
    const find = async () => {
      const key = await KEYS.require(records.uninterrupted(), id);
      return key.secretHashes.includes(sha256(keySecret)) ? key : undefined;
    };
    const { name, keySuffix } = await KEYS.change(
      records,
      id,
      (latest) => ({ secretHash: formatSecretHashes(withSecret(place, latest, keySecret)) }),
      (write) =>
        withFoundOutcome(write, find, {
          notMade: `Nothing was added to API key ${id}, so you can run the command again`,
          unknown: `The secret may have been added, but it is lost. See \`${programCommand(place, `admin key show ${id}`)}\`: if the key has one secret, nothing was added, and you can run the command again. If it has two, ask first if another person rotates the key: if not, drop the newer secret with \`${rotateCommand(place, id, " --cancel")}\``,
        }),
    );
    // Before the secret, because the output can fail.
    io.err(
      `Save the key secret now. It cannot be shown again. If it is lost, drop it: ${rotateCommand(place, id, " --cancel")}\nBoth secrets work until you drop the older one: ${rotateCommand(place, id, " --finish")}\n`,
    );
    printOne(io, output, { keySecret, id, name, keySuffix });
  },
});

/** The secrets of a record are in the order in which they were added. */
function withSecret(
  place: Place,
  { id, secretHashes: [first, ...others] }: ApiKey,
  keySecret: string,
): string[] {
  if (first !== undefined && others.length === 0) return [first, sha256(keySecret)];
  throw new CliError(
    `API key ${id} is being rotated already. End that rotation first. If no client has the newer secret, drop it with \`${rotateCommand(place, id, " --cancel")}\`. If all clients use it, drop the older one with \`${rotateCommand(place, id, " --finish")}\`.`,
  );
}

/** Returns the hash of the secret that remains. @throws CliError if the key has only one */
function keptSecret(
  place: Place,
  { id, secretHashes: [older, newer] }: ApiKey,
  isOlderDropped: boolean,
): string {
  if (older !== undefined && newer !== undefined) return isOlderDropped ? newer : older;
  throw new CliError(
    `API key ${id} has only one secret, so nothing was changed. To add another: ${rotateCommand(place, id)}`,
  );
}

function rotateCommand(place: Place, id: string, flag: "" | " --finish" | " --cancel" = ""): string {
  return programCommand(place, `admin key rotate ${id}${flag}`);
}
