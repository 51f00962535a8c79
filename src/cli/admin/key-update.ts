import * as z from "zod";
import { SECRETS } from "../../kube/paths.ts";
import { clusterSettings } from "../../settings/cluster.ts";
import { option, UsageError } from "../../settings/option.ts";
import { addressOrCidr, listOf, nonEmptyText } from "../../settings/values.ts";
import { defineCommand } from "../command.ts";
import { outputOption, roles } from "../common-options.ts";
import { printOne } from "../output.ts";
import { futureInstant, orWord } from "../values.ts";
import { withRecords } from "./connection.ts";
import { encoded, findKeySecret, keyArgument, ofOrganization, readKey, shownKey } from "./keys.ts";
import type { DataChange } from "./records.ts";
import { untilUndisturbed } from "./retry.ts";

const changes = z.object({
  name: option(nonEmptyText.optional(), { placeholder: "text", description: "its new name", flagOnly: true }),
  role: option(roles.optional(), {
    placeholder: "role",
    description: "its new roles, in place of all that it has",
    list: true,
    flagOnly: true,
  }),
  expireAt: option(orWord("never", futureInstant).optional(), {
    placeholder: "time",
    description: "new end of its validity, such as 2030-01-31T12:00:00Z, or never",
    flagOnly: true,
  }),
  allowFrom: option(orWord("all", listOf(addressOrCidr)).optional(), {
    placeholder: "cidr",
    description: "addresses that may use it, in place of those that it has, or all",
    list: true,
    flagOnly: true,
  }),
});

export const updateKey = defineCommand({
  name: "update",
  summary: "change the name, roles, expiry or addresses of an API key",
  details: "Values that are not given are kept. admin key rotate changes the secret.",
  examples: [
    "admin key update <uuid> --expire-at 2030-01-31T12:00:00Z",
    "admin key update <uuid> --allow-from 10.0.0.0/8 --allow-from 192.0.2.7",
  ],
  arguments: z.object(keyArgument),
  options: changes.extend({ ...ofOrganization, ...outputOption, ...clusterSettings }),
  async run({ key: id, organization, output, name, role, expireAt, allowFrom, ...cluster }, io) {
    const change = dataOf({ name, role, expireAt, allowFrom });
    if (Object.keys(change).length === 0) {
      throw new UsageError("There is nothing to change: give --name, --role, --expire-at or --allow-from.");
    }
    const shown = await withRecords(cluster, io, async (records) => {
      await untilUndisturbed(`API key ${id}`, async () => {
        const secret = await findKeySecret(records, id, organization);
        readKey(secret, records);
        await records.change(SECRETS, secret, change);
        return secret;
      });
      const now = await findKeySecret(records.uninterrupted(), id, organization);
      return shownKey(readKey(now, records), now.metadata.name);
    });
    printOne(io, output, shown);
  },
});

function dataOf({ name, role, expireAt, allowFrom }: z.output<typeof changes>): DataChange {
  const list = allowFrom === "all" ? [] : allowFrom?.map((source) => ({ description: "", source }));
  const texts = {
    name,
    roles: role && JSON.stringify([...new Set(role)]),
    expireAt: expireAt === "never" ? null : expireAt?.toISOString(),
    ipAccessList: list && (list.length === 0 ? null : JSON.stringify(list)),
  };
  return Object.fromEntries(
    Object.entries(texts).flatMap(([key, text]) =>
      text === undefined ? [] : [[key, text === null ? null : encoded(text)]],
    ),
  );
}
