import * as z from "zod";
import type { ConfigMap, Secret } from "../../../kube/objects.ts";
import { CONFIG_MAPS, SECRETS } from "../../../kube/paths.ts";
import { membersConfigMapName } from "../../../records/members.ts";
import { clusterSettings } from "../../../settings/cluster.ts";
import { readTiers, tiersFileSetting } from "../../../settings/tiers.ts";
import { defineCommand } from "../../command.ts";
import { outputOption } from "../../common-options.ts";
import { printDetails } from "../../output.ts";
import { withRecords } from "../cluster.ts";
import { membersOf } from "../member/read.ts";
import { rolloutWindowStateRow } from "../rollout-window.ts";
import { servicesOf } from "../service/read.ts";
import { findOrganization, organizationArgument } from "./find.ts";

export const showOrganization = defineCommand({
  name: "show",
  summary: "show an organization, with its services and members",
  examples: ["admin organization show <uuid>", "admin organization show <uuid> --output yaml"],
  arguments: z.object(organizationArgument),
  options: z.object({ ...tiersFileSetting, ...outputOption, ...clusterSettings }),
  async run({ organization: id, tiersFile, output, ...cluster }, io) {
    const tiers = readTiers(tiersFile);
    const read = await withRecords(cluster, io, async (records) => ({
      ...(await findOrganization(records, id)),
      services: await records.list<ConfigMap>(CONFIG_MAPS, "service", id),
      members: await records.get<ConfigMap>(CONFIG_MAPS, membersConfigMapName(id)),
      keys: await records.list<Secret>(SECRETS, "api-key", id),
    }));
    const { name, tier: tierName, createdAt, byocConfig, privateEndpoints } = read.organization;
    const tier = tiers.get(tierName);
    if (!tier) {
      io.err(
        `The tier ${tierName} is not among the tiers known here, which are ${[...tiers.keys()].join(", ")}: give the file of the tiers with --tiers-file.\n`,
      );
    }
    const services = servicesOf(io, read.services).map(({ id, name, namespace }) => ({
      id,
      name,
      namespace,
    }));
    printDetails(
      io,
      output,
      {
        ...{ id, name, createdAt, tier: tierName },
        defaultCpuMillicores: tier?.defaultSize.cpuMillicores,
        maximumCpuMillicores: tier?.maximumSize.cpuMillicores,
        ...rolloutWindowStateRow(read.organization.rolloutWindow, Date.now()),
        ...{ byocConfig, privateEndpoints, apiKeys: read.keys.length },
      },
      {
        services: { columns: ["id", "name", "namespace"], rows: services },
        members: {
          columns: ["userId", "name", "email", "role", "joinedAt"],
          rows: membersOf(io, read.members).map((member) => ({ ...member })),
        },
      },
    );
  },
});
