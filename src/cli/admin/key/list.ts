import * as z from "zod";
import type { Secret } from "../../../kube/objects.ts";
import { SECRETS } from "../../../kube/paths.ts";
import { parseApiKey } from "../../../records/api-key.ts";
import { clusterSettings } from "../../../settings/cluster.ts";
import { defineCommand } from "../../command.ts";
import { outputOption } from "../../common-options.ts";
import { printList } from "../../output.ts";
import { withRecords } from "../cluster.ts";
import { organizationOption } from "../common-options.ts";
import { wellFormed } from "../well-formed.ts";
import { shownKey } from "./find.ts";

export const listKeys = defineCommand({
  name: "list",
  summary: "list the API keys of an organization",
  details: "Neither a key id nor a secret is shown: the cluster does not know them.",
  examples: ["admin key list --organization <uuid>"],
  options: z.object({ ...organizationOption, ...outputOption, ...clusterSettings }),
  async run({ organization, output, ...cluster }, io) {
    const objects = await withRecords(cluster, io, (records) =>
      records.list<Secret>(SECRETS, "api-key", organization),
    );
    const keys = wellFormed(io, objects, ({ metadata, data }) => {
      const parsed = parseApiKey(metadata.labels, data);
      return parsed.ok ? { ok: true, value: shownKey(parsed.value, metadata.name) } : parsed;
    });
    printList(
      io,
      output,
      ["id", "name", "keySuffix", "state", "roles", "createdAt", "expireAt", "secretName"],
      keys,
    );
  },
});
