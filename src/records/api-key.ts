import { hash, randomBytes } from "node:crypto";
import * as z from "zod";
import { canonicalUuid } from "../domain/identifiers.ts";
import { API_KEY_SECRET_TYPE, ORGANIZATION_LABEL, recordLabels } from "./labels.ts";
import { instant, nonEmpty, type Parsed, parseRecord, yamlValue } from "./parse.ts";

/**
 * Secret `api-key-<hex SHA-256 of the key ID>`; the key ID is the user name of HTTP Basic. It contains neither the key
 * ID nor the secret, only the last 4 characters of the key ID and the SHA-256 of the secret. The secret is 256 random
 * bits, so a single SHA-256 is enough.
 */
export interface ApiKey {
  /** The resource ID that the API returns; not the key ID. */
  readonly id: string;
  readonly organizationId: string;
  readonly name: string;
  /** Last 4 characters of the key ID. */
  readonly keySuffix: string;
  /** SHA-256 of the secret in hexadecimal digits; two of them while it is rotated. */
  readonly secretHashes: readonly string[];
  readonly state: "enabled" | "disabled";
  readonly roles: readonly string[];
  readonly createdAt: Date;
  readonly expireAt: Date | undefined;
  /** Addresses and CIDRs, not validated; if one is malformed, the key is denied everywhere (domain/access-list.ts). */
  readonly ipAccessList: readonly { readonly description: string; readonly source: string }[];
}

const KEY_ID_LENGTH = 20;
const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/** Returns the hash in hexadecimal digits. */
export function sha256(text: string): string {
  return hash("sha256", text, "hex");
}

export function apiKeySecretName(keyId: string): string {
  return `api-key-${sha256(keyId)}`;
}

/** A caller sends the key ID, so a Secret with any other name is never found. */
const SECRET_NAME = /^api-key-[0-9a-f]{64}$/;

/** The format of `secretHash` in the record. */
export function formatSecretHashes(hashes: readonly string[]): string {
  return hashes.map((digits) => `sha256:${digits}`).join(" ");
}

const HASH = /^sha256:([0-9a-f]{64})$/;

/** The keys of the Secret. */
export const apiKeyData = z.object({
  id: z
    .string()
    .refine((id) => canonicalUuid(id) === id, "must be a lowercase UUID")
    .meta({
      format: "uuid",
      description:
        "Resource ID, in lower case. The API and the logs show it; it is not the key ID that a caller sends.",
    }),
  name: nonEmpty.meta({ description: "Name for people." }),
  keySuffix: z
    .string()
    .length(4, "must be the last 4 characters of the key ID")
    .meta({ description: "The last 4 characters of the key ID, so that people recognize the key." }),
  secretHash: z.string({ error: "is missing" }).transform(parseSecretHashes).meta({
    description:
      "SHA-256 of the secret as `sha256:` and 64 lower-case hexadecimal digits; two of them, separated by a space, while the secret is rotated. Both secrets work then.",
  }),
  state: z
    .enum(["enabled", "disabled"], { error: "must be enabled or disabled" })
    .meta({ description: "A disabled key gets 401." }),
  roles: yamlValue(z.array(z.string().meta({ description: "Name of a role." }))).meta({
    description: "`admin` allows everything, `developer` allows reads, any other role allows nothing.",
  }),
  createdAt: instant.meta({ description: "Time of creation." }),
  expireAt: instant
    .optional()
    .meta({ description: "Time from which the key gets 401. Without it, the key does not expire." }),
  ipAccessList: yamlValue(
    z.array(
      z.object({
        description: z.string().default("").meta({ description: "Text for people." }),
        source: z.string().meta({
          description:
            "IPv4 or IPv6 address, or CIDR that begins with the first address of its range, such as 10.0.0.0/8. IPv6 ranges such as ::/0 allow no IPv4 address. A malformed entry denies every address: the key gets 403.",
        }),
      }),
    ),
  )
    .default([])
    .meta({ description: "Addresses that may use the key. Without entries, every address may." }),
});

/** Returns strings, because a small Buffer keeps alive the whole block from which Node allocated it. */
function parseSecretHashes(text: string, context: z.RefinementCtx): string[] {
  const parts = text.split(/[\s,]+/).filter((part) => part !== "");
  const hashes = parts.flatMap((part) => HASH.exec(part)?.[1] ?? []);
  if (hashes.length !== parts.length || hashes.length < 1 || hashes.length > 2) {
    context.addIssue({ code: "custom", message: "must be one or two of sha256:<64 hex digits>" });
    return z.NEVER;
  }
  return hashes;
}

/** @param values the Secret's data, still in base64 */
export function parseApiKey(
  objectName: string,
  labels: Readonly<Record<string, string>> | undefined,
  values: Readonly<Record<string, string>> | undefined,
): Parsed<ApiKey> {
  if (!SECRET_NAME.test(objectName)) {
    return {
      ok: false,
      problem: "the name must be api-key-<SHA-256 of the key ID in lowercase hexadecimal digits>",
      isImmutable: true,
    };
  }
  const organizationId = labels?.[ORGANIZATION_LABEL] ?? "";
  if (canonicalUuid(organizationId) !== organizationId) {
    return {
      ok: false,
      problem: `the label ${ORGANIZATION_LABEL} must be the lowercase ID of the organization`,
    };
  }
  const decoded = Object.fromEntries(
    Object.entries(values ?? {}).map(([key, value]) => [key, Buffer.from(value, "base64").toString("utf8")]),
  );
  const parsed = parseRecord(apiKeyData, decoded);
  if (!parsed.ok) return parsed;
  const { secretHash, expireAt, ...rest } = parsed.value;
  return { ok: true, value: { organizationId, secretHashes: secretHash, expireAt, ...rest } };
}

/** Generates a key ID and a secret. They are shown once and never stored. */
export function newCredentials(): { readonly keyId: string; readonly keySecret: string } {
  return { keyId: randomText(KEY_ID_LENGTH), keySecret: randomBytes(32).toString("base64url") };
}

function randomText(length: number): string {
  let text = "";
  while (text.length < length) {
    // Bytes beyond the largest multiple of 62 are dropped, so that every character is equally likely.
    for (const byte of randomBytes(length)) {
      if (byte < 248 && text.length < length) text += ALPHABET[byte % ALPHABET.length];
    }
  }
  return text;
}

export function apiKeySecret(
  key: Pick<ApiKey, "id" | "organizationId" | "name" | "roles" | "createdAt" | "expireAt" | "ipAccessList">,
  credentials: { readonly keyId: string; readonly keySecret: string },
) {
  return {
    apiVersion: "v1",
    kind: "Secret",
    type: API_KEY_SECRET_TYPE,
    metadata: {
      name: apiKeySecretName(credentials.keyId),
      labels: recordLabels("api-key", key.organizationId),
    },
    stringData: {
      id: key.id,
      name: key.name,
      keySuffix: credentials.keyId.slice(-4),
      secretHash: formatSecretHashes([sha256(credentials.keySecret)]),
      state: "enabled",
      roles: JSON.stringify(key.roles),
      createdAt: key.createdAt.toISOString(),
      ...(key.expireAt ? { expireAt: key.expireAt.toISOString() } : {}),
      ...(key.ipAccessList.length > 0 ? { ipAccessList: JSON.stringify(key.ipAccessList) } : {}),
    },
  };
}
