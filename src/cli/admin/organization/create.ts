import { randomUUID } from "node:crypto";
import * as z from "zod";
import { CONFIG_MAPS } from "../../../kube/paths.ts";
import { organizationConfigMap } from "../../../records/organization.ts";
import { clusterSettings } from "../../../settings/cluster.ts";
import { option } from "../../../settings/option.ts";
import { readTiers, tiersFileSetting } from "../../../settings/tiers.ts";
import { nonEmptyText, onOff } from "../../../settings/values.ts";
import { defineCommand } from "../../command.ts";
import { outputOption } from "../../common-options.ts";
import { printOne } from "../../output.ts";
import { uuid } from "../../values.ts";
import { withRecords } from "../cluster.ts";
import { rolloutWindowOption, rolloutWindowRow } from "../rollout-window.ts";
import { checkTier } from "../tiers.ts";

export const createOrganization = defineCommand({
  name: "create",
  summary: "create an organization",
  examples: [
    "admin organization create --name 'Acme Corp' --tier basic",
    "admin organization create --name 'Acme Corp' --tier basic --create-namespace --output json",
  ],
  options: z.object({
    name: option(nonEmptyText, { placeholder: "text", description: "name of the organization" }),
    tier: option(nonEmptyText, {
      placeholder: "name",
      description: "its tier, which gives the default and the largest size of its pipes",
    }),
    id: option(uuid.optional(), { placeholder: "uuid", description: "its id; without it a new one" }),
    createNamespace: option(onOff, {
      description: "make the namespace of the records too, unless it is there",
      default: "false",
    }),
    ...rolloutWindowOption,
    ...tiersFileSetting,
    ...outputOption,
    ...clusterSettings,
  }),
  async run(
    { name, tier, id = randomUUID(), createNamespace, rolloutWindow, tiersFile, output, ...cluster },
    io,
  ) {
    checkTier(tier, readTiers(tiersFile));
    const organization = { id, name, tier, createdAt: new Date() };
    await withRecords(cluster, io, async (records) => {
      if (createNamespace) await records.createNamespace();
      await records.create(
        CONFIG_MAPS,
        organizationConfigMap({ ...organization, rolloutWindow }),
        `An organization with the id ${id} is there already; it was left as it is.`,
      );
    });
    printOne(io, output, { ...organization, ...rolloutWindowRow(rolloutWindow) });
  },
});
