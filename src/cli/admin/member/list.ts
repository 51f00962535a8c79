import * as z from "zod";
import type { ConfigMap } from "../../../kube/objects.ts";
import { CONFIG_MAPS } from "../../../kube/paths.ts";
import { membersConfigMapName } from "../../../records/members.ts";
import { clusterSettings } from "../../../settings/cluster.ts";
import { defineCommand } from "../../command.ts";
import { outputOption } from "../../common-options.ts";
import { printList } from "../../output.ts";
import { withRecords } from "../cluster.ts";
import { organizationOption } from "../common-options.ts";
import { findOrganization } from "../organization/find.ts";
import { membersOf } from "./read.ts";

export const listMembers = defineCommand({
  name: "list",
  summary: "list the members of an organization",
  examples: [
    "admin member list --organization <uuid>",
    "admin member list --organization <uuid> --output json",
  ],
  options: z.object({ ...organizationOption, ...outputOption, ...clusterSettings }),
  async run({ organization, output, ...cluster }, io) {
    const object = await withRecords(cluster, io, async (records) => {
      await findOrganization(records, organization);
      return await records.get<ConfigMap>(CONFIG_MAPS, membersConfigMapName(organization));
    });
    printList(
      io,
      output,
      ["userId", "name", "email", "role", "joinedAt"],
      membersOf(io, object).map((member) => ({ ...member })),
    );
  },
});
