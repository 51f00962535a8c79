import { resolve } from "node:path";
import { UsageError } from "../../settings/option.ts";
import { defineCommand } from "../command.ts";
import { confirm } from "../confirm.ts";
import { CliError } from "../failure.ts";
import type { Io } from "../io.ts";
import { argument, outputOption, yesOption } from "../options.ts";
import { printList } from "../output.ts";
import { certificatesFor, completed, keySuffix, newConnectionOptions, requireProfile } from "./access.ts";
import { changeProfiles, type Profile, profileNames, profilePath, readProfiles } from "./profile-file.ts";
import { keySecret, profileName } from "./values.ts";

const nameArgument = { name: argument(profileName, "name of the profile", profileNames) };

const set = defineCommand({
  name: "profile set",
  summary: "create or change a profile",
  details:
    "A profile stores the address of an API and a key. Profiles are in a file that only you can read:\n" +
    "pipe-scaling/profiles.yaml in $XDG_CONFIG_HOME or ~/.config. Values that you omit do not change.\n" +
    "The command prompts for the secret of the key without showing it. Without a terminal, it reads the secret\n" +
    "from standard input. The first profile becomes the default.",
  examples: [
    "profile set prod --api-url https://api.example.com --key-id <id>",
    "profile set prod < secret.txt",
  ],
  options: { ...nameArgument, ...newConnectionOptions },
  async run({ name, ...values }, io) {
    const path = profilePath(io.env);
    const known = readProfiles(path).profiles[name];
    const caFile = values.caFile && resolve(values.caFile);
    const connection = completed({ ...values, caFile }, known);
    const { apiUrl, keyId, insecureHttp } = connection;
    if (apiUrl === undefined || keyId === undefined) {
      throw new UsageError(
        `The profile ${name} does not exist yet. To create it, specify --api-url and --key-id.`,
      );
    }
    certificatesFor(apiUrl, connection);
    const profile: Profile = {
      apiUrl,
      keyId,
      caFile: connection.caFile,
      insecureHttp: insecureHttp ? "true" : undefined,
      keySecret: values.keySecret ?? (await readSecret(io, keyId)),
    };
    const changed = changeProfiles(path, ({ current, profiles }) => {
      const isFirst = Object.keys(profiles).length === 0;
      return { current: current ?? (isFirst ? name : undefined), profiles: { ...profiles, [name]: profile } };
    });
    const use =
      changed.current === name
        ? "It is in use."
        : `Use it with --profile ${name}, or by default after \`pipe-scaling profile use ${name}\`.`;
    io.err(`Saved the profile ${name} in ${path}. ${use}\n`);
  },
});

/** Reads the secret from standard input: all users of the machine can read command lines. */
async function readSecret(io: Io, keyId: string): Promise<string> {
  const text = await io.askSecret(
    io.terminal.input ? `Secret of the key that ends in ${keySuffix(keyId)}: ` : "",
  );
  if (text === undefined) {
    throw new UsageError(
      "The secret of the key is missing. Type it, pass it on standard input, or set PIPE_SCALING_KEY_SECRET.",
    );
  }
  const read = keySecret.safeParse(text.trim());
  if (read.success) return read.data;
  throw new CliError(
    `The secret of the key is malformed: ${read.error.issues[0]?.message}. Nothing was changed.`,
  );
}

const list = defineCommand({
  name: "profile list",
  summary: "list the profiles",
  details: "KEY SUFFIX is the end of the key ID. Secrets are never shown.",
  options: outputOption,
  async run({ output }, io) {
    const { current, profiles } = readProfiles(profilePath(io.env));
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
    changeProfiles(profilePath(io.env), ({ profiles }) => {
      requireProfile(name, profiles);
      return { current: name, profiles };
    });
    io.err(`The profile ${name} is in use.\n`);
  },
});

const remove = defineCommand({
  name: "profile remove",
  summary: "remove a profile with its secret",
  details:
    "The API key stays valid until an administrator of the cluster deletes it with `admin key delete`.",
  examples: ["profile remove staging", "profile remove staging --yes"],
  options: { ...nameArgument, ...yesOption },
  async run({ name, yes }, io) {
    const path = profilePath(io.env);
    requireProfile(name, readProfiles(path).profiles);
    await confirm(io, yes, `Remove the profile ${name} with its secret?`);
    changeProfiles(path, ({ current, profiles }) => {
      const { [name]: _, ...others } = profiles;
      return { current: current === name ? undefined : current, profiles: others };
    });
    io.err(`Removed the profile ${name}.\n`);
  },
});

export const profile = [set, list, use, remove];
