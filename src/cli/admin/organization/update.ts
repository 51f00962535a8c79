import * as z from "zod";
import { CONFIG_MAPS } from "../../../kube/paths.ts";
import { clusterSettings } from "../../../settings/cluster.ts";
import { option, UsageError } from "../../../settings/option.ts";
import { readTiers, tiersFileSetting } from "../../../settings/tiers.ts";
import { nonEmptyText } from "../../../settings/values.ts";
import { defineCommand } from "../../command.ts";
import { outputOption } from "../../common-options.ts";
import { printOne } from "../../output.ts";
import { withRecords } from "../cluster.ts";
import { untilUndisturbed } from "../guarded.ts";
import {
  changedWindow,
  newRolloutWindowOption,
  rolloutWindowChange,
  rolloutWindowRow,
} from "../rollout-window.ts";
import { checkTier } from "../tiers.ts";
import { findOrganization, organizationArgument } from "./find.ts";

export const updateOrganization = defineCommand({
  name: "update",
  summary: "change the tier, the name or the rollout window of an organization",
  details:
    "With another tier the controller resizes its pipes: those that have the default of the tier, and those\n" +
    "that are larger than the new one allows or were held back by the old one.\n\n" +
    "The rollout window applies to the services that have no window of their own.",
  examples: [
    "admin organization update <uuid> --tier scale",
    "admin organization update <uuid> --name 'Acme Inc'",
    "admin organization update <uuid> --rollout-window '{schedule: \"0 2 * * 6\", duration: 4h, timeZone: Europe/Berlin}'",
  ],
  arguments: z.object(organizationArgument),
  options: z.object({
    tier: option(nonEmptyText.optional(), {
      placeholder: "name",
      description: "its new tier",
      flagOnly: true,
    }),
    name: option(nonEmptyText.optional(), {
      placeholder: "text",
      description: "its new name",
      flagOnly: true,
    }),
    ...newRolloutWindowOption,
    ...tiersFileSetting,
    ...outputOption,
    ...clusterSettings,
  }),
  async run({ organization: id, tier, name, rolloutWindow, tiersFile, output, ...cluster }, io) {
    if (tier === undefined && name === undefined && rolloutWindow === undefined) {
      throw new UsageError("There is nothing to change: give --tier, --name or --rollout-window.");
    }
    if (tier !== undefined) checkTier(tier, readTiers(tiersFile));
    const change = {
      ...(tier === undefined ? {} : { tier }),
      ...(name === undefined ? {} : { name }),
    };
    const before = await withRecords(cluster, io, (records) =>
      untilUndisturbed(`Organization ${id}`, async () => {
        const { organization, object } = await findOrganization(records, id);
        await records.change(CONFIG_MAPS, object, { ...change, ...rolloutWindowChange(rolloutWindow) });
        return organization;
      }),
    );
    const { createdAt } = before;
    printOne(io, output, {
      ...{ id, name: before.name, tier: before.tier, createdAt, ...change },
      ...rolloutWindowRow(changedWindow(before.rolloutWindow, rolloutWindow)),
    });
  },
});
