import { randomUUID } from "node:crypto";
import * as z from "zod";
import type { Secret } from "../kube/objects.ts";
import { SECRETS } from "../kube/paths.ts";
import { apiKeySecret, newCredentials, parseApiKey } from "../records/api-key.ts";
import { withRecords } from "./cluster.ts";
import { defineCommand } from "./command.ts";
import { clusterOptions, outputOption, roles } from "./common-options.ts";
import { CliError } from "./failure.ts";
import { option } from "./option.ts";
import { requireOrganization } from "./organization.ts";
import { printList, printOne } from "./output.ts";
import type { Records } from "./records.ts";
import { addressOrCidr, futureInstant, listOf, nonEmptyText, uuid } from "./values.ts";
import { wellFormed } from "./well-formed.ts";

/** api-contract, part 2. */
const MOST_KEYS = 100;

export const createKey = defineCommand({
  name: "create",
  summary: "create an API key of an organization",
  details:
    "Prints the key id and the key secret, which are the user name and the password of HTTP Basic.\n" +
    "They are shown this once: the cluster keeps only hashes of them.",
  examples: [
    "key create --organization <uuid> --name ci --role admin",
    "key create --organization <uuid> --name dashboards --role developer --allow-from 10.0.0.0/8 --output json",
  ],
  options: z.object({
    organization: option(uuid, { placeholder: "uuid", description: "id of the organization" }),
    name: option(nonEmptyText, { placeholder: "text", description: "name of the key" }),
    role: option(roles, {
      placeholder: "role",
      description: "admin may do everything, developer may read",
      list: true,
    }),
    expireAt: option(futureInstant.optional(), {
      placeholder: "time",
      description: "end of its validity, such as 2030-01-31T12:00:00Z; without it never",
    }),
    allowFrom: option(listOf(addressOrCidr).optional(), {
      placeholder: "cidr",
      description: "addresses that may use the key; without it all",
      list: true,
    }),
    ...outputOption,
    ...clusterOptions,
  }),
  async run({ organization, name, role, expireAt, allowFrom = [], output, ...cluster }, io) {
    const key = {
      id: randomUUID(),
      organizationId: organization,
      name,
      roles: [...new Set(role)],
      createdAt: new Date(),
      expireAt,
      ipAccessList: allowFrom.map((source) => ({ description: "", source })),
    };
    const credentials = newCredentials();
    await withRecords(cluster, async (records) => {
      await requireOrganization(records, organization);
      await requireRoom(records, organization);
      await records.create(
        SECRETS,
        apiKeySecret(key, credentials),
        "A key with the same random id is there already; try again.",
      );
    });
    const { id, roles, createdAt } = key;
    const shown = { id, organizationId: organization, name, roles, createdAt, expireAt, allowFrom };
    printOne(io, output, { ...credentials, ...shown });
    if (output === "table") io.err("Keep the key secret now: it is not shown again.\n");
  },
});

async function requireRoom(records: Records, organizationId: string): Promise<void> {
  const keys = await records.list<Secret>(SECRETS, "api-key", organizationId);
  if (keys.length < MOST_KEYS) return;
  throw new CliError(
    `Organization ${organizationId} has ${keys.length} API keys, and ${MOST_KEYS} is the most: delete one first (key list --organization ${organizationId} names their Secrets).`,
  );
}

export const listKeys = defineCommand({
  name: "list",
  summary: "list the API keys of an organization",
  details: "Neither a key id nor a secret is shown: the cluster does not know them.",
  examples: ["key list --organization <uuid>"],
  options: z.object({
    organization: option(uuid, { placeholder: "uuid", description: "id of the organization" }),
    ...outputOption,
    ...clusterOptions,
  }),
  async run({ organization, output, ...cluster }, io) {
    const objects = await withRecords(cluster, (records) =>
      records.list<Secret>(SECRETS, "api-key", organization),
    );
    const keys = wellFormed(io, objects, (object) => {
      const parsed = parseApiKey(object.metadata.labels, object.data);
      return parsed.ok ? { ok: true, value: { ...parsed.value, secretName: object.metadata.name } } : parsed;
    });
    printList(
      io,
      output,
      ["id", "name", "keySuffix", "state", "roles", "createdAt", "expireAt", "secretName"],
      keys.map(({ id, name, keySuffix, state, roles, createdAt, expireAt, ipAccessList, secretName }) => ({
        id,
        name,
        keySuffix,
        state,
        roles,
        createdAt,
        expireAt,
        allowFrom: ipAccessList.map(({ source }) => source),
        secretName,
      })),
    );
  },
});
