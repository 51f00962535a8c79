import { randomUUID } from "node:crypto";
import * as z from "zod";
import type { Secret } from "../../kube/objects.ts";
import { SECRETS } from "../../kube/paths.ts";
import { apiKeySecret, newCredentials } from "../../records/api-key.ts";
import { option } from "../../settings/option.ts";
import { addressOrCidr, listOf, nonEmptyText } from "../../settings/values.ts";
import { outputOption, roles } from "../common-options.ts";
import { CliError } from "../failure.ts";
import { printOne } from "../output.ts";
import { futureInstant } from "../values.ts";
import { recordsCommand } from "./command.ts";
import { createRecord, KEYS, ORGANIZATIONS, requireRecord } from "./kinds.ts";
import { organizationOption } from "./options.ts";
import type { Records } from "./records.ts";
import { withKnownOutcome } from "./retry.ts";

/** docs/reference/contract.md#limits */
const MAX_KEYS = 100;

export const createKey = recordsCommand({
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
  }),
  async run(records, { organization, name, role, expireAt, allowFrom = [], output }, io) {
    const shown = {
      id: randomUUID(),
      ...{ organizationId: organization, name, roles: [...new Set(role)], createdAt: new Date(), expireAt },
    };
    const credentials = newCredentials();
    const ipAccessList = allowFrom.map((source) => ({ description: "", source }));
    await requireRecord(records, ORGANIZATIONS, organization);
    await requireRoom(records, organization, MAX_KEYS - 1);
    const secret = apiKeySecret({ ...shown, ipAccessList }, credentials);
    await createWithinLimit(records.uninterrupted(), organization, secret);
    printOne(io, output, { ...credentials, ...shown, allowFrom });
    if (output === "table") io.err("Keep the key secret now: it is not shown again.\n");
  },
});

/**
 * If several commands create the last allowed keys concurrently, each counts again after its write. The last one
 * sees all keys, so the limit holds once all have ended, although more of them than necessary may withdraw their key.
 */
async function createWithinLimit(
  records: Records,
  organizationId: string,
  secret: ReturnType<typeof apiKeySecret>,
): Promise<void> {
  const { id } = secret.stringData;
  await withKnownOutcome(
    createRecord(records, KEYS, id, secret),
    `It is not known whether the key was created, and its secret is lost: if admin key list --organization ${organizationId} lists the id ${id}, delete that key`,
  );
  try {
    await requireRoom(records, organizationId, MAX_KEYS);
  } catch (error) {
    const own = await records.get<Secret>(SECRETS, secret.metadata.name);
    if (own) await records.delete(SECRETS, own);
    throw error;
  }
}

/** @throws CliError if there are more keys than `limit` */
async function requireRoom(records: Records, organizationId: string, limit: number): Promise<void> {
  const { length } = await records.list<Secret>(SECRETS, "api-key", organizationId);
  if (length <= limit) return;
  throw new CliError(
    `Organization ${organizationId} has ${Math.min(length, MAX_KEYS)} API keys, and ${MAX_KEYS} is the most: delete one first (admin key list --organization ${organizationId}, admin key delete <key>).`,
  );
}
