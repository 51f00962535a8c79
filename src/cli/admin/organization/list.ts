import * as z from "zod";
import type { ConfigMap } from "../../../kube/objects.ts";
import { CONFIG_MAPS } from "../../../kube/paths.ts";
import { parseOrganization } from "../../../records/organization.ts";
import { clusterSettings } from "../../../settings/cluster.ts";
import { defineCommand } from "../../command.ts";
import { outputOption } from "../../common-options.ts";
import { printList } from "../../output.ts";
import { withRecords } from "../cluster.ts";
import { wellFormed } from "../well-formed.ts";

export const listOrganizations = defineCommand({
  name: "list",
  summary: "list the organizations",
  examples: ["admin organization list", "admin organization list --output json"],
  options: z.object({ ...outputOption, ...clusterSettings }),
  async run({ output, ...cluster }, io) {
    const objects = await withRecords(cluster, io, (records) =>
      records.list<ConfigMap>(CONFIG_MAPS, "organization"),
    );
    const organizations = wellFormed(io, objects, ({ metadata, data }) =>
      parseOrganization(metadata.name, data),
    );
    printList(
      io,
      output,
      ["id", "name", "tier", "createdAt"],
      organizations.map(({ id, name, tier, createdAt }) => ({ id, name, tier, createdAt })),
    );
  },
});
