import * as z from "zod";
import { SECRETS } from "../../../kube/paths.ts";
import type { ApiKey } from "../../../records/api-key.ts";
import { clusterSettings } from "../../../settings/cluster.ts";
import { defineCommand } from "../../command.ts";
import { withRecords } from "../cluster.ts";
import { untilUndisturbed } from "../guarded.ts";
import { encoded, findKeySecret, keyArgument, ofOrganization, readKey } from "./find.ts";

export const disableKey = stateCommand({
  name: "disable",
  state: "disabled",
  summary: "let an API key be refused, until it is enabled again",
  details: "Each API refuses it as soon as it has seen the change, within a second.",
});

export const enableKey = stateCommand({
  name: "enable",
  state: "enabled",
  summary: "let an API key be used again",
});

function stateCommand({
  name,
  state,
  ...texts
}: {
  readonly name: string;
  readonly state: ApiKey["state"];
  readonly summary: string;
  readonly details?: string;
}) {
  return defineCommand({
    name,
    ...texts,
    examples: [`admin key ${name} <uuid>`],
    arguments: z.object(keyArgument),
    options: z.object({ ...ofOrganization, ...clusterSettings }),
    async run({ key: id, organization, ...cluster }, io) {
      const before = await withRecords(cluster, io, (records) =>
        untilUndisturbed(`API key ${id}`, async () => {
          const secret = await findKeySecret(records, id, organization);
          const key = readKey(secret, records);
          await records.change(SECRETS, secret, { state: encoded(state) });
          return key;
        }),
      );
      const already = before.state === state ? " already" : "";
      io.err(`API key ${before.name} (${id}) is ${state}${already}.\n`);
    },
  });
}
