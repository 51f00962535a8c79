import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { option, UsageError } from "../../settings/option.ts";
import { nonEmptyText } from "../../settings/values.ts";
import { defineCommand } from "../command.ts";
import { confirm } from "../confirm.ts";
import { CliError } from "../failure.ts";
import type { Io } from "../io.ts";
import { argument, outputOption, yesOption } from "../options.ts";
import { printList } from "../output.ts";
import {
  apiUrl,
  caFileOption,
  insecureHttpOption,
  keyId,
  keySecret,
  keySuffix,
  profileName,
  readCertificates,
  requirePrivate,
  requireProfile,
} from "./access.ts";
import { type Profile, ProfileFile } from "./profile-file.ts";

const nameArgument = { name: argument(profileName, "name of the profile") };

/** Stands for standard input. */
const STANDARD_INPUT = "-";

const set = defineCommand({
  name: "profile set",
  summary: "create or change a profile",
  details:
    "A profile has the address of an API and a key. Profiles are in a file that only you can read:\n" +
    "pipe-scaling/profiles.yaml in $XDG_CONFIG_HOME or ~/.config. Values that are not given are kept. You are\n" +
    "asked for the secret of the key, which is not shown. The first profile is in use at once.",
  examples: [
    "profile set prod --api-url https://api.example.com --key-id <id>",
    "profile set prod --key-secret-file -",
  ],
  options: {
    ...nameArgument,
    apiUrl: option(apiUrl.optional(), {
      placeholder: "url",
      description: "address of the API, such as https://api.example.com",
    }),
    keyId: option(keyId.optional(), { placeholder: "id", description: "id of the API key" }),
    keySecretFile: option(nonEmptyText.optional(), {
      placeholder: "file",
      description: `file with the secret of the key, ${STANDARD_INPUT} for standard input; default: you are asked`,
    }),
    keySecret: option(keySecret.optional(), {
      description: "secret of the API key, if there is no file",
      secret: true,
    }),
    ...caFileOption,
    ...insecureHttpOption,
  },
  async run({ name, keySecretFile, ...values }, io) {
    const file = ProfileFile.of(io.env);
    const known = file.read().profiles[name];
    const url = values.apiUrl ?? known?.apiUrl;
    const id = values.keyId ?? known?.keyId;
    if (url === undefined || id === undefined) {
      throw new UsageError(
        `The profile ${name} is new: give both --api-url (or PIPE_SCALING_API_URL) and --key-id (or PIPE_SCALING_KEY_ID).`,
      );
    }
    const isInsecure = values.insecureHttp || (known?.insecureHttp === "true" && url === known.apiUrl);
    requirePrivate(url, isInsecure);
    const caFile = values.caFile === undefined ? known?.caFile : resolve(values.caFile);
    if (caFile !== undefined) readCertificates(caFile);
    const profile: Profile = {
      apiUrl: url,
      keyId: id,
      keySecret: await secretOf(io, id, keySecretFile, values.keySecret),
      ...(caFile === undefined ? {} : { caFile }),
      ...(isInsecure ? { insecureHttp: "true" as const } : {}),
    };
    // Another command may have changed the file while the secret was typed.
    const latest = file.read();
    const isFirst = Object.keys(latest.profiles).length === 0;
    const current = latest.current ?? (isFirst ? name : undefined);
    file.write({ current, profiles: { ...latest.profiles, [name]: profile } });
    const use =
      current === name
        ? "It is in use."
        : `Use it with --profile ${name}, or by default after \`pipe-scaling profile use ${name}\`.`;
    io.err(`Saved the profile ${name} in ${file.path}. ${use}\n`);
  },
});

/** Never from the command line, which everybody on the machine can read. */
async function secretOf(
  io: Io,
  id: string,
  path: string | undefined,
  variable: string | undefined,
): Promise<string> {
  if (path === undefined && variable !== undefined) return variable;
  const isTyped = path === undefined || (path === STANDARD_INPUT && io.terminal.input);
  if (isTyped && !io.terminal.input) {
    throw new UsageError(
      `The secret of the key is missing, and standard input is not a terminal: give --key-secret-file FILE (${STANDARD_INPUT} is standard input), or set PIPE_SCALING_KEY_SECRET.`,
    );
  }
  const question = `Secret of the key that ends in ${keySuffix(id)}: `;
  const text = isTyped ? await io.askSecret(question) : await textIn(io, path);
  const read = keySecret.safeParse(text?.trim() ?? "");
  if (read.success) return read.data;
  throw new CliError(
    `This is not the secret of a key: ${read.error.issues[0]?.message}. Nothing was changed.`,
  );
}

async function textIn(io: Io, path: string): Promise<string | undefined> {
  return path === STANDARD_INPUT ? await io.ask("") : readFileSync(path, "utf8");
}

const list = defineCommand({
  name: "profile list",
  summary: "list the profiles",
  details: "KEY SUFFIX is the end of the key's id. A secret is never shown.",
  options: outputOption,
  async run({ output }, io) {
    const { current, profiles } = ProfileFile.of(io.env).read();
    const rows = Object.entries(profiles).map(([name, { apiUrl, keyId, caFile }]) => {
      return { name, inUse: name === current, apiUrl, keySuffix: keySuffix(keyId), caFile };
    });
    printList(io, output, ["name", "inUse", "apiUrl", "keySuffix", "caFile"], rows);
  },
});

const use = defineCommand({
  name: "profile use",
  summary: "choose the profile that commands use by default",
  examples: ["profile use staging"],
  options: nameArgument,
  async run({ name }, io) {
    const file = ProfileFile.of(io.env);
    const { profiles } = file.read();
    requireProfile(name, profiles);
    file.write({ current: name, profiles });
    io.err(`The profile ${name} is in use.\n`);
  },
});

const remove = defineCommand({
  name: "profile remove",
  summary: "remove a profile with its secret",
  details: "The API key stays valid: an admin of the cluster deletes it with admin key delete.",
  examples: ["profile remove staging", "profile remove staging --yes"],
  options: { ...nameArgument, ...yesOption },
  async run({ name, yes }, io) {
    const file = ProfileFile.of(io.env);
    requireProfile(name, file.read().profiles);
    await confirm(io, yes, `Remove the profile ${name} with its secret?`);
    const { current, profiles } = file.read();
    const { [name]: _, ...others } = profiles;
    file.write({ current: current === name ? undefined : current, profiles: others });
    io.err(`Removed the profile ${name}.\n`);
  },
});

export const profile = [set, list, use, remove];
