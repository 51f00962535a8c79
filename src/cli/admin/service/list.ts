import * as z from "zod";
import type { ConfigMap } from "../../../kube/objects.ts";
import { CONFIG_MAPS } from "../../../kube/paths.ts";
import { clusterSettings } from "../../../settings/cluster.ts";
import { option } from "../../../settings/option.ts";
import { defineCommand } from "../../command.ts";
import { outputOption } from "../../common-options.ts";
import { printList } from "../../output.ts";
import { uuid } from "../../values.ts";
import { withRecords } from "../cluster.ts";
import { servicesOf } from "./read.ts";

export const listServices = defineCommand({
  name: "list",
  summary: "list the services",
  examples: ["admin service list", "admin service list --organization <uuid> --output json"],
  options: z.object({
    organization: option(uuid.optional(), {
      placeholder: "uuid",
      description: "only those of this organization",
    }),
    ...outputOption,
    ...clusterSettings,
  }),
  async run({ organization, output, ...cluster }, io) {
    const objects = await withRecords(cluster, io, (records) =>
      records.list<ConfigMap>(CONFIG_MAPS, "service", organization),
    );
    printList(
      io,
      output,
      ["id", "organizationId", "name", "namespace"],
      servicesOf(io, objects).map(({ id, organizationId, name, namespace }) => ({
        ...{ id, organizationId, name, namespace },
      })),
    );
  },
});
