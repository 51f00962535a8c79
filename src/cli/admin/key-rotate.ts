import * as z from "zod";
import { type ApiKey, formatSecretHashes, newCredentials, sha256 } from "../../records/api-key.ts";
import { UsageError } from "../../settings/option.ts";
import { outputOption, switchOption, yesOption } from "../common-options.ts";
import { confirm } from "../confirm.ts";
import { CliError } from "../failure.ts";
import type { Io } from "../io.ts";
import { printOne } from "../output.ts";
import { recordsCommand } from "./command.ts";
import { ofOrganization } from "./keys.ts";
import { base64, changeRecord, KEYS, keyArgument, requireRecord } from "./kinds.ts";
import type { Records } from "./records.ts";
import { withKnownOutcome } from "./retry.ts";

export const rotateKey = recordsCommand({
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
    finish: switchOption("drop the older secret"),
    cancel: switchOption("drop the newer secret"),
    ...ofOrganization,
    ...yesOption,
    ...outputOption,
  }),
  check({ finish, cancel }) {
    if (finish && cancel) throw new UsageError("--finish and --cancel exclude each other: give one.");
  },
  async run(records, { key: id, organization, finish, cancel, yes, output }, io) {
    const key = { id, organization };
    if (finish || cancel) return await dropSecret(records, key, finish ? "older" : "newer", io, yes);
    const { keySecret } = newCredentials();
    const { name, keySuffix } = await addSecret(records, key, keySecret);
    printOne(io, output, { keySecret, id, name, keySuffix });
    io.err(
      `Keep the key secret now: it is not shown again. Both secrets work until admin key rotate ${id} --finish.\n`,
    );
  },
});

interface Named {
  readonly id: string;
  readonly organization: string | undefined;
}

function addSecret(records: Records, key: Named, keySecret: string): Promise<ApiKey> {
  const { id } = key;
  const change = changeHashes(records, key, ({ secretHashes: [first, ...others] }) => {
    if (first !== undefined && others.length === 0) return [first, sha256(keySecret)];
    throw new CliError(
      `API key ${id} has two secrets already: end that rotation first, with admin key rotate ${id} --finish, or --cancel.`,
    );
  });
  return withKnownOutcome(
    change,
    `It is not known whether the secret was added, and it is lost: if admin key show ${id} shows two secrets, remove it with admin key rotate ${id} --cancel`,
  );
}

async function dropSecret(
  records: Records,
  key: Named,
  which: "older" | "newer",
  io: Io,
  yes: boolean,
): Promise<void> {
  const { id, organization } = key;
  // The record has the secrets in the order in which they were added.
  const kept = ({ secretHashes: [older, newer] }: ApiKey): Buffer => {
    if (older !== undefined && newer !== undefined) return which === "older" ? newer : older;
    throw new CliError(
      `API key ${id} has one secret only, and it was left: admin key rotate ${id} adds another.`,
    );
  };
  const { record } = await requireRecord(records, KEYS, id, organization);
  const confirmed = kept(record);
  const what = `the ${which} secret of API key ${record.name} (${id})`;
  await confirm(io, yes, `Drop ${what}, and reject clients that still use it?`);
  await changeHashes(records, key, (latest) => {
    if (kept(latest).equals(confirmed)) return [confirmed];
    throw new CliError(
      `The secrets of API key ${id} have changed meanwhile, and were kept: check them, then run the command again.`,
    );
  });
  io.err(`Dropped ${what}.\n`);
}

async function changeHashes(
  records: Records,
  key: Named,
  decide: (key: ApiKey) => readonly Buffer[],
): Promise<ApiKey> {
  const { record } = await changeRecord(records, KEYS, key, (latest) => {
    return { secretHash: base64(formatSecretHashes(decide(latest))) };
  });
  return record;
}
