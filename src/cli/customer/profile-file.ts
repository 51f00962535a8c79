import { closeSync, constants, fstatSync, mkdirSync, openSync, readFileSync, type Stats } from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { stringify } from "yaml";
import * as z from "zod";
import { yamlValue } from "../../records/parse.ts";
import type { Environment } from "../../settings/option.ts";
import { CliError } from "../failure.ts";
import { apiUrl, keyId, keySecret, profileName } from "./access-values.ts";
import { withLock } from "./file-lock.ts";
import { replaceFile } from "./replace-file.ts";

const profile = z.strictObject({
  apiUrl,
  keyId,
  keySecret,
  /** Absolute. */
  caFile: z.string().optional(),
  insecureHttp: z.literal("true").optional(),
});

/** Where an API is, and a key for it. */
export type Profile = z.infer<typeof profile>;

export interface Profiles {
  /** The one that is used where none is named. */
  readonly current: string | undefined;
  readonly byName: ReadonlyMap<string, Profile>;
}

const contents = yamlValue(
  z.strictObject({
    current: profileName.optional(),
    profiles: z.record(profileName, profile).default({}),
  }),
);

/** By the rules of the XDG base directories: a relative path in the variable does not count. */
export function profilePath(env: Environment): string {
  const home = env["XDG_CONFIG_HOME"] ?? "";
  const folder = isAbsolute(home) ? home : join(env["HOME"] || homedir(), ".config");
  return join(folder, "pipe-scaling", "profiles.yaml");
}

/** Has secrets in it, so it is read only where nobody else can, and written so that nobody else can. */
export class ProfileFile {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** @throws CliError with what is to be done about the file */
  read(): Profiles {
    const text = this.#text();
    if (text === undefined) return { current: undefined, byName: new Map() };
    const { success, data, error } = contents.safeParse(text);
    if (!success) {
      const [issue] = error.issues;
      throw new CliError(
        `The profile file ${this.path} cannot be read: ${issue?.message}. Put it right, or remove it and make the profiles anew.`,
      );
    }
    const byName = new Map(Object.entries(data.profiles));
    return { current: data.current, byName };
  }

  /**
   * Of several commands that change it at once none undoes what another did. All of it is written or, whatever
   * happens, nothing.
   *
   * @param change of what is there at that moment
   */
  async change(signal: AbortSignal, change: (latest: Profiles) => Profiles): Promise<Profiles> {
    mkdirSync(dirname(this.path), { recursive: true, mode: 0o700 });
    return await withLock(this.path, signal, () => {
      const changed = change(this.read());
      const { current, byName } = changed;
      const data = { ...(current === undefined ? {} : { current }), profiles: Object.fromEntries(byName) };
      replaceFile(this.path, stringify(data));
      return changed;
    });
  }

  #text(): string | undefined {
    const file = openIfThere(this.path);
    if (file === undefined) return undefined;
    try {
      // Of what was opened, not of what may be there by now.
      this.#requireOwn(fstatSync(file));
      return readFileSync(file, "utf8");
    } finally {
      closeSync(file);
    }
  }

  #requireOwn(stats: Stats): void {
    const { uid, mode } = stats;
    if (!stats.isFile()) throw new CliError(`The profile file ${this.path} is no file: remove it.`);
    // There are no such owners on Windows.
    const self = process.geteuid?.();
    if (self === undefined) return;
    if (uid !== self) {
      throw new CliError(
        `The profile file ${this.path} belongs to another user, who can change where your key is sent: remove it and make the profiles anew, or become its owner with chown.`,
      );
    }
    if ((mode & 0o077) !== 0) {
      const octal = (mode & 0o777).toString(8).padStart(4, "0");
      throw new CliError(
        `The profile file ${this.path} has secrets in it, and others can read or change it (its mode is ${octal}): take their rights away with \`chmod 600 ${this.path}\`. Who may have read it knows the secrets: have those keys rotated.`,
      );
    }
  }
}

/** One that is no file, such as a named pipe, must not hold us up. */
function openIfThere(path: string): number | undefined {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}
