import { randomUUID } from "node:crypto";
import * as z from "zod";
import { KubeUnreachableError } from "../../kube/errors.ts";
import type { Secret } from "../../kube/objects.ts";
import { SECRETS } from "../../kube/paths.ts";
import { apiKeySecret, newCredentials } from "../../records/api-key.ts";
import { clusterSettings } from "../../settings/cluster.ts";
import { option } from "../../settings/option.ts";
import { addressOrCidr, listOf, nonEmptyText } from "../../settings/values.ts";
import { defineCommand } from "../command.ts";
import { outputOption, roles } from "../common-options.ts";
import { CliError } from "../failure.ts";
import { printOne } from "../output.ts";
import { futureInstant } from "../values.ts";
import { withRecords } from "./connection.ts";
import { findOrganization } from "./find.ts";
import { organizationOption } from "./options.ts";
import type { Records } from "./records.ts";

/** docs/reference/contract.md#limits */
const MOST_KEYS = 100;

export const createKey = defineCommand({
  name: "create",
  summary: "create an API key of an organization",
  details:
    "Prints the key id and the key secret, which are the user name and the password of HTTP Basic.\n" +
    "They are shown this once: the cluster keeps only hashes of them.",
  examples: [
    "admin key create --organization <uuid> --name ci --role admin",
    "admin key create --organization <uuid> --name dashboards --role developer --allow-from 10.0.0.0/8 --output json",
  ],
  options: z.object({
    ...organizationOption,
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
    ...clusterSettings,
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
    await withRecords(cluster, io, async (records) => {
      await findOrganization(records, organization);
      await requireRoom(records, organization, MOST_KEYS - 1);
      await createOrTakeBack(records.uninterrupted(), organization, apiKeySecret(key, credentials));
    });
    const { id, roles, createdAt } = key;
    const shown = { id, organizationId: organization, name, roles, createdAt, expireAt, allowFrom };
    printOne(io, output, { ...credentials, ...shown });
    if (output === "table") io.err("Keep the key secret now: it is not shown again.\n");
  },
});

/**
 * If several commands create the last allowed keys concurrently, each counts again after its write. The last one
 * sees all keys, so the limit holds once all have ended, although more of them than necessary may withdraw their key.
 */
async function createOrTakeBack(
  records: Records,
  organizationId: string,
  secret: ReturnType<typeof apiKeySecret>,
): Promise<void> {
  try {
    await records.create(SECRETS, secret, "A key with the same random id is there already; try again.");
  } catch (error) {
    if (!(error instanceof KubeUnreachableError)) throw error;
    throw new CliError(
      `It is not known whether the key was created, and its secret is lost: if admin key list --organization ${organizationId} lists the id ${secret.stringData.id}, delete that key (${error.message}).`,
      { cause: error },
    );
  }
  try {
    await requireRoom(records, organizationId, MOST_KEYS);
  } catch (error) {
    const { name } = secret.metadata;
    const own = await records.get<Secret>(SECRETS, name);
    if (own) await records.delete(SECRETS, own);
    throw error;
  }
}

/** @param most how many there may be */
async function requireRoom(records: Records, organizationId: string, most: number): Promise<void> {
  const { length } = await records.list<Secret>(SECRETS, "api-key", organizationId);
  if (length <= most) return;
  throw new CliError(
    `Organization ${organizationId} has ${Math.min(length, MOST_KEYS)} API keys, and ${MOST_KEYS} is the most: delete one first (admin key list --organization ${organizationId}, admin key delete <key>).`,
  );
}
