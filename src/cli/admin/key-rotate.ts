import * as z from "zod";
import { KubeUnreachableError } from "../../kube/errors.ts";
import { SECRETS } from "../../kube/paths.ts";
import { type ApiKey, formatSecretHashes, newCredentials, sha256 } from "../../records/api-key.ts";
import { clusterSettings } from "../../settings/cluster.ts";
import { option, UsageError } from "../../settings/option.ts";
import { onOff } from "../../settings/values.ts";
import { defineCommand } from "../command.ts";
import { outputOption, yesOption } from "../common-options.ts";
import { confirm } from "../confirm.ts";
import { CliError } from "../failure.ts";
import type { Io } from "../io.ts";
import { printOne } from "../output.ts";
import { withRecords } from "./connection.ts";
import { encoded, findKeySecret, keyArgument, ofOrganization, readKey } from "./keys.ts";
import type { Records } from "./records.ts";
import { untilUndisturbed } from "./retry.ts";

export const rotateKey = defineCommand({
  name: "rotate",
  summary: "rotate the secret of an API key without downtime",
  details:
    "Adds a second secret, and prints it this once. Both work, with the same key id, until --finish drops the\n" +
    "older one, when all who use the key have the newer one, or --cancel the newer one.",
  examples: [
    "admin key rotate <uuid>",
    "admin key rotate <uuid> --finish",
    "admin key rotate <uuid> --cancel --yes",
  ],
  arguments: z.object(keyArgument),
  options: z.object({
    finish: option(onOff, { description: "drop the older secret", default: "false" }),
    cancel: option(onOff, { description: "drop the newer secret", default: "false" }),
    ...ofOrganization,
    ...yesOption,
    ...outputOption,
    ...clusterSettings,
  }),
  async run({ key: id, organization, finish, cancel, yes, output, ...cluster }, io) {
    if (finish && cancel) throw new UsageError("--finish and --cancel exclude each other: give one.");
    await withRecords(cluster, io, async (records) => {
      const place = { records, id, organization };
      if (finish) return await dropSecret(place, "older", io, yes);
      if (cancel) return await dropSecret(place, "newer", io, yes);
      const { keySecret } = newCredentials();
      const { name, keySuffix } = await addSecret(place, keySecret);
      printOne(io, output, { keySecret, id, name, keySuffix });
      io.err(
        `Keep the key secret now: it is not shown again. Both secrets work until admin key rotate ${id} --finish.\n`,
      );
    });
  },
});

interface Place {
  readonly records: Records;
  readonly id: string;
  readonly organization: string | undefined;
}

async function addSecret(place: Place, keySecret: string): Promise<ApiKey> {
  const { id } = place;
  try {
    return await changeHashes(place, ({ secretHashes: [first, ...others] }) => {
      if (first !== undefined && others.length === 0) return [first, sha256(keySecret)];
      throw new CliError(
        `API key ${id} has two secrets already: end that rotation first, with admin key rotate ${id} --finish, or --cancel.`,
      );
    });
  } catch (error) {
    if (!(error instanceof KubeUnreachableError)) throw error;
    throw new CliError(
      `It is not known whether the secret was added, and it is lost: if admin key show ${id} shows two secrets, remove it with admin key rotate ${id} --cancel (${error.message}).`,
      { cause: error },
    );
  }
}

async function dropSecret(place: Place, which: "older" | "newer", io: Io, yes: boolean): Promise<void> {
  const { records, id, organization } = place;
  const kept = (key: ApiKey): Buffer => {
    // The order in which they were added is that of the record.
    const [older, newer] = key.secretHashes;
    if (older !== undefined && newer !== undefined) return which === "older" ? newer : older;
    throw new CliError(
      `API key ${id} has one secret only, and it was left: admin key rotate ${id} adds another.`,
    );
  };
  const shown = readKey(await findKeySecret(records, id, organization), records);
  const stays = kept(shown);
  const what = `the ${which} secret of API key ${shown.name} (${id})`;
  await confirm(io, yes, `Drop ${what}, and reject clients that still use it?`);
  await changeHashes(place, (key) => {
    if (kept(key).equals(stays)) return [stays];
    throw new CliError(
      `The secrets of API key ${id} have changed meanwhile, and were kept: check them, then run the command again.`,
    );
  });
  io.err(`Dropped ${what}.\n`);
}

/** @param decide on the hashes of the key as it is now */
function changeHashes(
  { records, id, organization }: Place,
  decide: (key: ApiKey) => readonly Buffer[],
): Promise<ApiKey> {
  return untilUndisturbed(`API key ${id}`, async () => {
    const secret = await findKeySecret(records, id, organization);
    const key = readKey(secret, records);
    await records.change(SECRETS, secret, { secretHash: encoded(formatSecretHashes(decide(key))) });
    return key;
  });
}
