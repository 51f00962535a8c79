import type { Secret } from "../../../kube/objects.ts";
import { SECRETS } from "../../../kube/paths.ts";
import { type ApiKey, parseApiKey } from "../../../records/api-key.ts";
import { option } from "../../../settings/option.ts";
import { argument } from "../../argument.ts";
import { CliError } from "../../failure.ts";
import { uuid } from "../../values.ts";
import type { Records } from "../records.ts";

export const keyArgument = {
  key: argument(uuid, { description: "id of the API key, as admin key list shows it" }),
};

/** A cluster may have very many keys, and the id is in none of their names. */
export const ofOrganization = {
  organization: option(uuid.optional(), {
    placeholder: "uuid",
    description: "look only among the keys of this organization, which is faster",
  }),
};

/** @throws CliError when there is none of that id */
export async function findKeySecret(
  records: Records,
  id: string,
  organizationId: string | undefined,
): Promise<Secret> {
  const secrets = await records.list<Secret>(SECRETS, "api-key", organizationId);
  const [found, another] = secrets.filter(({ data }) => decoded(data?.["id"]) === id);
  if (!found) {
    const where = organizationId === undefined ? "" : ` in organization ${organizationId}`;
    throw new CliError(
      `There is no API key with the id ${id}${where}: see admin key list --organization <uuid>.`,
    );
  }
  if (another) {
    throw new CliError(
      `Several Secrets are the API key ${id}, among them ${found.metadata.name} and ${another.metadata.name}: delete with kubectl those that should not be.`,
    );
  }
  return found;
}

/** @throws CliError when the record is malformed */
export function readKey(secret: Secret, records: Records): ApiKey {
  const parsed = parseApiKey(secret.metadata.labels, secret.data);
  if (parsed.ok) return parsed.value;
  throw new CliError(
    `The record of the API key is malformed, put it right first (kubectl edit secret ${secret.metadata.name} --namespace ${records.namespace}): ${parsed.problem}.`,
  );
}

function decoded(text: string | undefined): string | undefined {
  return text === undefined ? undefined : Buffer.from(text, "base64").toString("utf8");
}

/** As a Secret's data has it. */
export function encoded(text: string): string {
  return Buffer.from(text, "utf8").toString("base64");
}

/** What is shown of a key; neither the key id nor a secret, which the cluster does not know. */
export function shownKey(key: ApiKey, secretName: string) {
  const { id, organizationId, name, keySuffix, state, roles, createdAt, expireAt, ipAccessList } = key;
  const allowFrom = ipAccessList.map(({ source }) => source);
  const secrets = key.secretHashes.length;
  return {
    ...{ id, organizationId, name, keySuffix, state, roles, createdAt, expireAt },
    ...{ allowFrom, secrets, secretName },
  };
}
