import * as z from "zod";
import { option } from "../../settings/option.ts";
import { addressOrCidr, listOf } from "../../settings/values.ts";
import { outputOption, roles } from "../common-options.ts";
import { printOne } from "../output.ts";
import { futureInstant, orWord } from "../values.ts";
import { recordsCommand } from "./command.ts";
import { ofOrganization, shownKey } from "./keys.ts";
import { base64, changeRecord, KEYS, keyArgument } from "./kinds.ts";
import { newNameOption, requireChange } from "./options.ts";
import type { DataChange } from "./records.ts";

const changes = z.object({
  ...newNameOption,
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

export const updateKey = recordsCommand({
  name: "update",
  summary: "change the name, roles, expiry or addresses of an API key",
  details: "Values that are not given are kept. admin key rotate changes the secret.",
  examples: [
    "admin key update <uuid> --expire-at 2030-01-31T12:00:00Z",
    "admin key update <uuid> --allow-from 10.0.0.0/8 --allow-from 192.0.2.7",
  ],
  arguments: z.object(keyArgument),
  options: z.object({ ...changes.shape, ...ofOrganization, ...outputOption }),
  check: ({ name, role, expireAt, allowFrom }) =>
    requireChange([name, role, expireAt, allowFrom], "--name, --role, --expire-at or --allow-from"),
  async run(records, { key: id, organization, output, ...values }, io) {
    const { record } = await changeRecord(records, KEYS, { id, organization }, () => dataOf(values));
    printOne(io, output, shownKey(record));
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
      text === undefined ? [] : [[key, text === null ? null : base64(text)]],
    ),
  );
}
