import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { option, UsageError } from "../../settings/option.ts";
import { nonEmptyText, onOff } from "../../settings/values.ts";
import { CliError } from "../failure.ts";
import { uuid } from "../values.ts";
import { apiUrl, isReadableByOthers, keyId, keySecret, keySuffix, profileName } from "./access-values.ts";
import type { Profile, Profiles } from "./profile-file.ts";

export const caFileOption = {
  caFile: option(nonEmptyText.optional(), {
    placeholder: "file",
    description:
      "certificate in PEM of the authority that is to have signed the API's, in place of the usual",
  }),
};

export const insecureHttpOption = {
  insecureHttp: option(onOff, {
    description: "send the key over plain HTTP to another machine, where everybody on the way can read it",
    default: "false",
  }),
};

/** Options that every command has that talks to the API. */
export const accessOptions = {
  profile: option(profileName.optional(), {
    placeholder: "name",
    description: "profile with the address and the key; without it the one in use (see profile list)",
  }),
  apiUrl: option(apiUrl.optional(), {
    placeholder: "url",
    description: "address of the API, such as https://api.example.com, in place of the profile's",
  }),
  keyId: option(keyId.optional(), {
    placeholder: "id",
    description: "id of the API key, in place of the profile's",
  }),
  keySecret: option(keySecret.optional(), {
    description: "secret of the API key, in place of the profile's",
    secret: true,
  }),
  ...caFileOption,
  ...insecureHttpOption,
};

export const organizationOption = {
  organization: option(uuid.optional(), {
    placeholder: "uuid",
    description: "id of the organization; without it the one that the key belongs to",
  }),
};

export interface AccessValues {
  readonly profile?: string | undefined;
  readonly apiUrl?: string | undefined;
  readonly keyId?: string | undefined;
  readonly keySecret?: string | undefined;
  readonly caFile?: string | undefined;
  readonly insecureHttp: boolean;
}

/** How to call the API. */
export interface Access {
  /** Without a slash at its end. */
  readonly url: string;
  readonly authorization: string;
  readonly keySuffix: string;
  /** In PEM; without it the usual authorities. */
  readonly ca: string | undefined;
  /** The profile that any of it is from. */
  readonly profile: string | undefined;
}

/** What a command must be given that is to call the same API, to follow on its other words. */
export function profileFlag({ profile }: Pick<Access, "profile">): string {
  return profile === undefined ? "" : ` --profile ${profile}`;
}

/**
 * Each setting as the command line or the environment has it, else as the profile does.
 *
 * @param profiles read only where something is missing, or a profile is asked for
 * @throws UsageError with what is missing or does not go together; CliError for a file that does not serve
 */
export function accessOf(values: AccessValues, profiles: () => Profiles): Access {
  const { apiUrl, keyId, keySecret } = values;
  const isComplete = apiUrl !== undefined && keyId !== undefined && keySecret !== undefined;
  const chosen = isComplete && values.profile === undefined ? undefined : choose(values.profile, profiles());
  const settings = settled(values, chosen?.profile);
  // What was said of the profile's address was said of no other.
  const isKept = chosen?.profile.insecureHttp === "true" && settings.url === chosen.profile.apiUrl;
  requirePrivate(settings.url, values.insecureHttp || isKept);
  const caFile = values.caFile ?? chosen?.profile.caFile;
  const pair = `${settings.keyId}:${settings.keySecret}`;
  return {
    url: settings.url,
    authorization: `Basic ${Buffer.from(pair).toString("base64")}`,
    keySuffix: keySuffix(settings.keyId),
    ca: caFile === undefined ? undefined : readCertificates(caFile),
    profile: chosen?.name,
  };
}

interface Chosen {
  readonly name: string;
  readonly profile: Profile;
}

function choose(asked: string | undefined, { current, byName }: Profiles): Chosen | undefined {
  const name = asked ?? current;
  const profile = name === undefined ? undefined : byName.get(name);
  if (name !== undefined && profile) return { name, profile };
  const names = [...byName.keys()];
  if (name !== undefined) throw noSuchProfile(name, names);
  if (names.length > 0) {
    throw new UsageError(
      `No profile is in use: choose one with --profile, or for good with \`pipe-scaling profile use NAME\`. There are: ${names.join(", ")}.`,
    );
  }
  return undefined;
}

export function noSuchProfile(name: string, names: readonly string[]): UsageError {
  const there =
    names.length === 0
      ? `There are none yet: \`pipe-scaling profile set ${name} --api-url URL --key-id ID\` makes it.`
      : `There are: ${names.join(", ")}.`;
  return new UsageError(`There is no profile ${JSON.stringify(name)}. ${there}`);
}

function settled(values: AccessValues, profile: Profile | undefined) {
  const url = values.apiUrl ?? profile?.apiUrl;
  const keyId = values.keyId ?? profile?.keyId;
  // Another key has another secret.
  const keySecret = values.keySecret ?? (keyId === profile?.keyId ? profile?.keySecret : undefined);
  if (url !== undefined && keyId !== undefined && keySecret !== undefined) return { url, keyId, keySecret };
  const missing = [
    ...(url === undefined ? ["--api-url (or PIPE_SCALING_API_URL)"] : []),
    ...(keyId === undefined ? ["--key-id (or PIPE_SCALING_KEY_ID)"] : []),
    ...(keySecret === undefined ? ["PIPE_SCALING_KEY_SECRET"] : []),
  ].join(", ");
  throw new UsageError(
    profile
      ? `The secret in the profile is of another key than --key-id (or PIPE_SCALING_KEY_ID) names: set PIPE_SCALING_KEY_SECRET too.`
      : `It is not known which API to call, and with which key; missing: ${missing}. Keep them in a profile, with \`pipe-scaling profile set NAME --api-url URL --key-id ID\`, or give all three.`,
  );
}

/** @throws UsageError for an address to which a key must not be sent without a word about it */
export function requirePrivate(url: string, isAllowed: boolean): void {
  if (isAllowed || !isReadableByOthers(url)) return;
  throw new UsageError(
    `${url} is plain HTTP to another machine: everybody on the way could read the key. Write https://, or give --insecure-http (or PIPE_SCALING_INSECURE_HTTP=true) if that is all right.`,
  );
}

/** @throws CliError for a file that cannot be read, or has no certificate in it */
export function readCertificates(path: string): string {
  try {
    const pem = readFileSync(path, "utf8");
    // One that is none would be passed over in silence, and the API's be called untrusted.
    new X509Certificate(pem);
    return pem;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new CliError(`The certificate file ${path} does not serve, it must be in PEM: ${why}.`, { cause });
  }
}
