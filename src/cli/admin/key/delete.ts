import * as z from "zod";
import { SECRETS } from "../../../kube/paths.ts";
import { parseApiKey } from "../../../records/api-key.ts";
import { clusterSettings } from "../../../settings/cluster.ts";
import { defineCommand } from "../../command.ts";
import { yesOption } from "../../common-options.ts";
import { confirm } from "../../confirm.ts";
import { withRecords } from "../cluster.ts";
import { unlessChanged } from "../guarded.ts";
import { findKeySecret, keyArgument, ofOrganization } from "./find.ts";

export const deleteKey = defineCommand({
  name: "delete",
  summary: "delete an API key for good",
  details: "Each API refuses it as soon as it has seen the change, within a second.",
  examples: ["admin key delete <uuid>", "admin key delete <uuid> --yes"],
  arguments: z.object(keyArgument),
  options: z.object({ ...ofOrganization, ...yesOption, ...clusterSettings }),
  async run({ key: id, organization, yes, ...cluster }, io) {
    await withRecords(cluster, io, async (records) => {
      const secret = await findKeySecret(records, id, organization);
      const { metadata, data } = secret;
      const key = parseApiKey(metadata.labels, data);
      // One that cannot be read can still be deleted.
      const what = key.ok
        ? `${key.value.name} (${id}) of organization ${key.value.organizationId}`
        : `${id}, whose record is malformed`;
      await confirm(io, yes, `Delete API key ${what}?`);
      await unlessChanged(`API key ${id}`, () => records.delete(SECRETS, secret));
    });
    io.err(`API key ${id} is deleted.\n`);
  },
});
