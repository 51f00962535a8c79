import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { canonicalUuid } from "../../domain/identifiers.ts";
import { isLoopback } from "../../kube/loopback.ts";
import { option, UsageError } from "../../settings/option.ts";
import { nonEmptyText, written } from "../../settings/values.ts";
import type { Values } from "../command.ts";
import { CliError } from "../failure.ts";
import { argument, switchOption } from "../options.ts";
import type { Profile, Profiles } from "./profile-file.ts";

/** Can have a base path; the paths of the operations, which begin with /v1, follow it. */
export const apiUrl = written(
  "it must be the address of an API, such as https://api.example.com, without /v1 at its end and without a user",
  (text) => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (!url || !/^https?:$/.test(url.protocol)) return undefined;
    const { username, password, search, hash, pathname } = url;
    if (username || password || search || hash || /\/v1\/?$/.test(pathname)) return undefined;
    return url.href.replace(/\/+$/, "");
  },
);

/** The user name of HTTP Basic has no colon. */
export const keyId = written("it must be the id of a key: letters and digits, without blanks", (text) =>
  /^[!-9;-~]{1,200}$/.test(text) ? text : undefined,
);

export const keySecret = written("it must be the secret of a key, on one line and without blanks", (text) =>
  /^[!-~]{1,1000}$/.test(text) ? text : undefined,
);

export const profileName = written(
  "it must be a name of at most 64 letters, digits and the signs . _ -",
  (text) => (/^[A-Za-z0-9][-.\w]{0,63}$/.test(text) ? text : undefined),
);

/** The end of a key id, as the list of keys shows it. The whole id is half of the credentials. */
export function keySuffix(keyId: string): string {
  return keyId.slice(-4);
}

export const caFileOption = {
  caFile: option(nonEmptyText.optional(), {
    placeholder: "file",
    description:
      "PEM certificate of the authority that signed the certificate of the API; default: the usual authorities",
  }),
};

export const insecureHttpOption = {
  insecureHttp: switchOption(
    "allow plain HTTP to another machine, although everybody on the way can read the key",
  ),
};

/** Options of every command that calls the API. */
export const accessOptions = {
  profile: option(profileName.optional(), {
    placeholder: "name",
    description: "profile with the address and the key; default: the profile in use (see profile list)",
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

/** A person is likely to write the name of a service, so the rule says where its id is. */
const serviceId = written("it must be the UUID of a service (see `pipe-scaling services`)", canonicalUuid);

export const serviceArgument = {
  service: argument(serviceId, "id of the service (see `pipe-scaling services`)"),
};

type AccessValues = Values<typeof accessOptions>;

/** How to call the API. */
export interface Access {
  readonly url: string;
  readonly authorization: string;
  readonly keySuffix: string;
  /** In PEM; default: the usual authorities. */
  readonly ca: string | undefined;
  /** The profile that was used. */
  readonly profile: string | undefined;
}

/** The flag that makes another command call the same API, with a leading blank. */
export function profileFlag({ profile }: Pick<Access, "profile">): string {
  return profile === undefined ? "" : ` --profile ${profile}`;
}

/**
 * Settings of the command line or the environment, completed from the profile.
 *
 * @param profiles read only if something is missing, or a profile is named
 * @throws UsageError with what is missing or does not match; CliError for a file that cannot be used
 */
export function accessOf(values: AccessValues, profiles: () => Profiles): Access {
  const { apiUrl, keyId, keySecret } = values;
  const isComplete = apiUrl !== undefined && keyId !== undefined && keySecret !== undefined;
  const chosen = isComplete && values.profile === undefined ? undefined : choose(values.profile, profiles());
  const profile = chosen?.profile;
  const url = apiUrl ?? profile?.apiUrl;
  const id = keyId ?? profile?.keyId;
  // The secret belongs to the key of the profile.
  const secret = keySecret ?? (id === profile?.keyId ? profile?.keySecret : undefined);
  if (url === undefined || id === undefined || secret === undefined) throw missing(url, id, profile);
  // The profile allows plain HTTP only for its own address.
  requirePrivate(url, values.insecureHttp || (profile?.insecureHttp === "true" && url === profile.apiUrl));
  const caFile = values.caFile ?? profile?.caFile;
  return {
    url,
    authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString("base64")}`,
    keySuffix: keySuffix(id),
    ca: caFile === undefined ? undefined : readCertificates(caFile),
    profile: chosen?.name,
  };
}

function missing(url: string | undefined, keyId: string | undefined, profile: Profile | undefined) {
  if (profile) {
    return new UsageError(
      "--key-id (or PIPE_SCALING_KEY_ID) is not the key of the profile: set PIPE_SCALING_KEY_SECRET, too.",
    );
  }
  const absent = [
    ...(url === undefined ? ["--api-url (or PIPE_SCALING_API_URL)"] : []),
    ...(keyId === undefined ? ["--key-id (or PIPE_SCALING_KEY_ID)"] : []),
    "PIPE_SCALING_KEY_SECRET",
  ];
  return new UsageError(
    `The address of the API or the key is missing: ${absent.join(", ")}. Keep them in a profile with \`pipe-scaling profile set NAME --api-url URL --key-id ID\`, or give all three.`,
  );
}

function choose(named: string | undefined, { current, profiles }: Profiles) {
  const name = named ?? current;
  if (name !== undefined) return { name, profile: requireProfile(name, profiles) };
  const names = Object.keys(profiles);
  if (names.length === 0) return undefined;
  throw new UsageError(
    `No profile is in use: name one with --profile, or choose one with \`pipe-scaling profile use NAME\`. Profiles: ${names.join(", ")}.`,
  );
}

/** @throws UsageError if the profile does not exist */
export function requireProfile(name: string, profiles: Profiles["profiles"]): Profile {
  const profile = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
  if (profile) return profile;
  const names = Object.keys(profiles);
  const known =
    names.length === 0
      ? `Create it with \`pipe-scaling profile set ${name} --api-url URL --key-id ID\`.`
      : `Profiles: ${names.join(", ")}.`;
  throw new UsageError(`There is no profile ${JSON.stringify(name)}. ${known}`);
}

/** @throws UsageError for plain HTTP to another machine */
export function requirePrivate(url: string, isAllowed: boolean): void {
  const { protocol, hostname } = new URL(url);
  if (isAllowed || protocol === "https:" || isLoopback(hostname)) return;
  throw new UsageError(
    `${url} is plain HTTP to another machine, so everybody on the way could read the key: use https://, or allow it with --insecure-http (or PIPE_SCALING_INSECURE_HTTP=true).`,
  );
}

/** @throws CliError for a file without a certificate */
export function readCertificates(path: string): string {
  try {
    const pem = readFileSync(path, "utf8");
    // TLS would ignore a malformed certificate, and report the API as untrusted.
    new X509Certificate(pem);
    return pem;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new CliError(`The certificate file ${path} cannot be used, it must be in PEM: ${why}.`, { cause });
  }
}
