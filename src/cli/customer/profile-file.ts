import { randomUUID } from "node:crypto";
import {
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { stringify } from "yaml";
import * as z from "zod";
import { yamlValue } from "../../records/parse.ts";
import type { Environment } from "../../settings/option.ts";
import { CliError } from "../failure.ts";
import { apiUrl, keyId, keySecret, profileName } from "./values.ts";

const profile = z.strictObject({
  apiUrl,
  keyId,
  keySecret,
  /** Absolute. */
  caFile: z.string().optional(),
  insecureHttp: z.literal("true").optional(),
});

/** The address of an API and a key. */
export type Profile = z.infer<typeof profile>;

const contents = z.strictObject({
  /** Used if no profile is named. */
  current: profileName.optional(),
  profiles: z.record(profileName, profile).default({}),
});

export type Profiles = z.infer<typeof contents>;

/** In the XDG base directory specification a relative path in the variable is ignored. */
export function profilePath(env: Environment): string {
  const home = env["XDG_CONFIG_HOME"] ?? "";
  const folder = isAbsolute(home) ? home : join(env["HOME"] || homedir(), ".config");
  return join(folder, "pipe-scaling", "profiles.yaml");
}

/**
 * Reads the profiles; there are none if the file does not exist. The file contains secrets, so it must not be readable
 * or writable by other users.
 *
 * @throws CliError if the file cannot be used
 */
export function readProfiles(path: string): Profiles {
  return parsed(path, textOf(path));
}

/** Returns `undefined` if the file does not exist. */
function textOf(path: string): string | undefined {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (!stats) return undefined;
  requireOwnFile(path, stats);
  return readFileSync(path, "utf8");
}

function parsed(path: string, text: string | undefined): Profiles {
  if (text === undefined) return { profiles: {} };
  const { success, data, error } = yamlValue(contents).safeParse(text);
  if (success) return data;
  throw new CliError(
    `The profile file ${path} is malformed: ${error.issues[0]?.message}. Correct it, or remove it and create the profiles again.`,
  );
}

/** Returns the names for the completion of a shell, which has no place for errors. */
export function profileNames(env: Environment): string[] {
  try {
    return Object.keys(readProfiles(profilePath(env)).profiles);
  } catch {
    return [];
  }
}

/**
 * Replaces the file atomically, so that a crash never leaves an incomplete file. If another command has changed the
 * file meanwhile, the change is repeated with its profiles. Only the time between the comparison and the replacement
 * remains, in place of that of a slow write; a lock would remain after a kill.
 *
 * @param change must be repeatable
 * @returns the profiles in the file now
 */
export function changeProfiles(path: string, change: (profiles: Profiles) => Profiles): Profiles {
  for (;;) {
    const before = textOf(path);
    const profiles = change(parsed(path, before));
    if (replace(path, before, profiles)) return profiles;
  }
}

/** @returns false if the file no longer has the text `before` */
function replace(path: string, before: string | undefined, profiles: Profiles): boolean {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  // A symbolic link, such as one into a folder of dotfiles, remains.
  const target = statSync(path, { throwIfNoEntry: false }) ? realpathSync(path) : path;
  const temporary = `${target}.${randomUUID()}`;
  try {
    writeFileSync(temporary, stringify(profiles), { mode: 0o600, flag: "wx", flush: true });
    if (textOf(path) !== before) return false;
    renameSync(temporary, target);
    return true;
  } finally {
    rmSync(temporary, { force: true });
  }
}

function requireOwnFile(path: string, stats: Stats): void {
  // Reading a named pipe would wait forever.
  if (!stats.isFile()) {
    throw new CliError(`${path} must be a regular file. Remove it and create the profiles again.`);
  }
  // Windows has no such owners.
  const self = process.geteuid?.();
  if (self === undefined) return;
  if (stats.uid !== self) {
    throw new CliError(
      `The profile file ${path} belongs to another user, who could change where your key is sent: remove it and create the profiles again, or change the owner with chown.`,
    );
  }
  if ((stats.mode & 0o077) === 0) return;
  const octal = (stats.mode & 0o777).toString(8).padStart(4, "0");
  throw new CliError(
    `The profile file ${path} contains secrets, and other users can read or change it (mode ${octal}): run \`chmod 600 ${path}\`, and have the keys rotated if someone may have read it.`,
  );
}
