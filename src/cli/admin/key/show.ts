import * as z from "zod";
import type { ConfigMap } from "../../../kube/objects.ts";
import { CONFIG_MAPS } from "../../../kube/paths.ts";
import { keyUsageConfigMapName, parseKeyUsage } from "../../../records/key-usage.ts";
import { clusterSettings } from "../../../settings/cluster.ts";
import { defineCommand } from "../../command.ts";
import { outputOption } from "../../common-options.ts";
import { printOne } from "../../output.ts";
import { withRecords } from "../cluster.ts";
import { findKeySecret, keyArgument, ofOrganization, readKey, shownKey } from "./find.ts";

export const showKey = defineCommand({
  name: "show",
  summary: "show an API key, and when it was last used",
  details:
    "It has two secrets while it is rotated. The time of the last use is precise to a minute, and comes a\n" +
    "little later.",
  examples: ["admin key show <uuid>", "admin key show <uuid> --output yaml"],
  arguments: z.object(keyArgument),
  options: z.object({ ...ofOrganization, ...outputOption, ...clusterSettings }),
  async run({ key: id, organization, output, ...cluster }, io) {
    const shown = await withRecords(cluster, io, async (records) => {
      const secret = await findKeySecret(records, id, organization);
      const key = readKey(secret, records);
      const usage = await records.get<ConfigMap>(CONFIG_MAPS, keyUsageConfigMapName(key.organizationId));
      const used = parseKeyUsage(usage?.data).get(id);
      return { ...shownKey(key, secret.metadata.name), usedAt: used?.ok ? used.value : undefined };
    });
    printOne(io, output, shown);
  },
});
