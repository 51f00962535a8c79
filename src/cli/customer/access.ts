import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { canonicalUuid } from "../../domain/identifiers.ts";
import { messageOf } from "../../kube/errors.ts";
import { isLoopback } from "../../kube/loopback.ts";
import {
  declaredOptions,
  type Environment,
  type OptionText,
  option,
  UsageError,
  type Values,
} from "../../settings/option.ts";
import { nonEmptyText, onOff, written } from "../../settings/values.ts";
import { CliError } from "../failure.ts";
import { argument, quotedForShell } from "../options.ts";
import { type Profile, type Profiles, profileNames } from "./profile-file.ts";
import { apiUrl, keyId, keySecret, profileName } from "./values.ts";

/** The end of a key ID, as the list of keys shows it. The whole ID is half of the credentials. */
export function keySuffix(keyId: string): string {
  return keyId.slice(-4);
}

/** Declares the address of an API and a key. @param kind `flagOnly` to have no variables, except for the secret */
function connection(kind: Pick<OptionText, "flagOnly">) {
  return {
    apiUrl: option(apiUrl.optional(), {
      placeholder: "url",
      description: "address of the API, such as https://api.example.com (default: from the profile)",
      ...kind,
    }),
    keyId: option(keyId.optional(), {
      placeholder: "id",
      description: "ID of the API key (default: from the profile)",
      unquoted: true,
      ...kind,
    }),
    keySecret: option(keySecret.optional(), { description: "secret of the API key", secret: true }),
    caFile: option(nonEmptyText.optional(), {
      placeholder: "file",
      description:
        "PEM certificate of the authority that signed the certificate of the API (default: the public authorities)",
      ...kind,
    }),
    insecureHttp: option(onOff, {
      description: "allow plain HTTP to another machine, where anyone on the network can read the key",
      default: "false",
      ...kind,
    }),
  };
}

const connectionOptions = connection({});

/** For `profile set`: variables that were set for other commands must not change the profile. */
export const newConnectionOptions = connection({ flagOnly: true });

/** Options of every command that calls the API. */
export const accessOptions = {
  profile: option(profileName.optional(), {
    placeholder: "name",
    description: "profile with the address and the key (default: the selected profile, see profile list)",
    complete: profileNames,
  }),
  ...connectionOptions,
};

/** A person is likely to write the name of a service, so the rule says where its ID is. */
const serviceId = written("it must be the UUID of a service (see `pipe-scaling services`)", canonicalUuid);

export const serviceArgument = {
  service: argument(serviceId, "ID of the service (see `pipe-scaling services`)"),
};

/** How to call the API. */
export interface Access {
  readonly url: string;
  readonly authorization: string;
  readonly keySuffix: string;
  /** Certificates of the trusted authorities in PEM; `undefined` for the public authorities. */
  readonly ca: string | undefined;
  /** Name of the profile with the key and its secret; `undefined` if the secret comes from the environment. */
  readonly profile: string | undefined;
  /** The flags that make another command call the same API with the same key, each with a leading blank. */
  readonly flags: string;
}

/** A command to print, which follows the rescale of a service. */
export function watchCommand({ flags }: Pick<Access, "flags">, service: string): string {
  return `pipe-scaling scaling get ${service} --watch${flags}`;
}

/** @param given the values of this command, and the profile; a value that the environment has needs no flag */
function flagsOf(given: Readonly<Record<string, string | boolean | undefined>>, env: Environment): string {
  const flags = declaredOptions(accessOptions).map(({ key, flag, variable = "", schema }) => {
    const value = given[key];
    // The default profile can change, so its name is always printed.
    const isKnown = key !== "profile" && schema.safeParse(env[variable]).data === value;
    if (!flag || !value || isKnown) return "";
    return value === true ? ` ${flag}` : ` ${flag} ${quotedForShell(value)}`;
  });
  return flags.join("");
}

/**
 * Settings of the command line or the environment, completed from the profile.
 *
 * @param profiles reads the profiles; called only if a value is missing, or a profile is named
 * @throws UsageError for a missing value or profile, or plain HTTP to another machine; CliError for an unusable file
 */
export function accessOf(
  values: Values<typeof accessOptions>,
  env: Environment,
  profiles: () => Profiles,
): Access {
  const { apiUrl, keyId, keySecret } = values;
  const isComplete = apiUrl !== undefined && keyId !== undefined && keySecret !== undefined;
  const chosen = isComplete && values.profile === undefined ? undefined : choose(values.profile, profiles());
  const profile = chosen?.profile;
  const connection = completed(values, profile);
  const { apiUrl: url, keyId: id } = connection;
  // The secret in the profile is only for the key in the profile.
  const secret = keySecret ?? (id === profile?.keyId ? profile?.keySecret : undefined);
  if (url === undefined || id === undefined || secret === undefined) {
    const absent = [
      ...(url === undefined ? ["--api-url (or PIPE_SCALING_API_URL)"] : []),
      ...(id === undefined ? ["--key-id (or PIPE_SCALING_KEY_ID)"] : []),
      ...(secret === undefined ? ["PIPE_SCALING_KEY_SECRET"] : []),
    ];
    throw new UsageError(
      `The address of the API or the key is missing: ${absent.join(", ")}. Store them in a profile with \`pipe-scaling profile set NAME --api-url URL --key-id ID\`, or specify all three.`,
    );
  }
  return {
    url,
    authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString("base64")}`,
    keySuffix: keySuffix(id),
    ca: certificatesFor(url, connection),
    profile: keySecret === undefined ? chosen?.name : undefined,
    flags: flagsOf({ ...values, profile: chosen?.name }, env),
  };
}

/** Values that are not given come from the profile. */
export function completed(
  { apiUrl, keyId, caFile, insecureHttp }: Omit<Values<typeof connectionOptions>, "keySecret">,
  profile: Profile | undefined,
) {
  const isOwnUrl = apiUrl === undefined || apiUrl === profile?.apiUrl;
  return {
    apiUrl: apiUrl ?? profile?.apiUrl,
    keyId: keyId ?? profile?.keyId,
    caFile: caFile ?? profile?.caFile,
    // The profile allows plain HTTP only for its own address.
    insecureHttp: insecureHttp || (isOwnUrl && profile?.insecureHttp === "true"),
  };
}

function choose(named: string | undefined, { current, profiles }: Profiles) {
  const name = named ?? current;
  if (name !== undefined) return { name, profile: requireProfile(name, profiles) };
  const names = Object.keys(profiles);
  if (names.length === 0) return undefined;
  throw new UsageError(
    `No profile is selected. Specify one with --profile, or select a default with \`pipe-scaling profile use NAME\`. Profiles: ${names.join(", ")}.`,
  );
}

/** @throws UsageError if the profile does not exist */
export function requireProfile(name: string, profiles: Profiles["profiles"]): Profile {
  const profile = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
  if (profile) return profile;
  const names = Object.keys(profiles).join(", ") || "none";
  throw new UsageError(
    `There is no profile ${JSON.stringify(name)}. Profiles: ${names}. Create it with \`pipe-scaling profile set ${name} --api-url URL --key-id ID\`.`,
  );
}

/**
 * Returns the certificates of the trusted authorities in PEM; `undefined` for the public authorities.
 *
 * @throws UsageError for plain HTTP to another machine, CliError for a file without a certificate
 */
export function certificatesFor(
  url: string,
  { caFile, insecureHttp }: Pick<ReturnType<typeof completed>, "caFile" | "insecureHttp">,
): string | undefined {
  const { protocol, hostname } = new URL(url);
  if (!insecureHttp && protocol !== "https:" && !isLoopback(hostname)) {
    throw new UsageError(
      `${url} uses plain HTTP to another machine, so anyone on the network could read the key. Use https://, or allow it with --insecure-http.`,
    );
  }
  if (caFile === undefined) return undefined;
  try {
    const pem = readFileSync(caFile, "utf8");
    // TLS would ignore a malformed certificate, and report the API as untrusted.
    new X509Certificate(pem);
    return pem;
  } catch (cause) {
    const problem = `The certificate file ${caFile} cannot be used: ${messageOf(cause)}.`;
    throw new CliError(`${problem} It must be a readable file in PEM format.`, { cause });
  }
}
