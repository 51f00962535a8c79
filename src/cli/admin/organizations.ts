import { randomUUID } from "node:crypto";
import * as z from "zod";
import type { ConfigMap, Secret } from "../../kube/objects.ts";
import { CONFIG_MAPS, SECRETS } from "../../kube/paths.ts";
import { membersConfigMapName } from "../../records/members.ts";
import { organizationConfigMap, parseOrganization } from "../../records/organization.ts";
import { clusterSettings } from "../../settings/cluster.ts";
import { option, UsageError } from "../../settings/option.ts";
import { readTiers, tiersFileSetting } from "../../settings/tiers.ts";
import { nonEmptyText, onOff } from "../../settings/values.ts";
import { defineCommand } from "../command.ts";
import { outputOption } from "../common-options.ts";
import { printDetails, printList, printOne } from "../output.ts";
import { uuid } from "../values.ts";
import { withRecords } from "./connection.ts";
import { findOrganization, membersOf, organizationArgument, servicesOf } from "./find.ts";
import {
  changedWindow,
  checkTier,
  newRolloutWindowOption,
  rolloutWindowChange,
  rolloutWindowOption,
  rolloutWindowRow,
  rolloutWindowStateRow,
  wellFormed,
} from "./options.ts";
import { untilUndisturbed } from "./retry.ts";

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
      description: "create the namespace of the records, too, if it does not exist",
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
        `An organization with the id ${id} already exists; it was not changed.`,
      );
    });
    printOne(io, output, { ...organization, ...rolloutWindowRow(rolloutWindow) });
  },
});

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
