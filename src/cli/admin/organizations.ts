import { randomUUID } from "node:crypto";
import * as z from "zod";
import type { ConfigMap, Secret } from "../../kube/objects.ts";
import { CONFIG_MAPS, SECRETS } from "../../kube/paths.ts";
import { membersConfigMapName } from "../../records/members.ts";
import { type Organization, organizationConfigMap } from "../../records/organization.ts";
import { option } from "../../settings/option.ts";
import { readTiers, tiersFileSetting } from "../../settings/tiers.ts";
import { nonEmptyText } from "../../settings/values.ts";
import { outputOption, switchOption } from "../common-options.ts";
import { printList, printOne, type Row } from "../output.ts";
import { recordsCommand } from "./command.ts";
import {
  changeRecord,
  createRecord,
  listRecords,
  membersOf,
  ORGANIZATIONS,
  organizationArgument,
  requireRecord,
  SERVICES,
} from "./kinds.ts";
import {
  checkTier,
  idOption,
  newNameOption,
  newRolloutWindowOption,
  requireChange,
  rolloutWindowChange,
  rolloutWindowOption,
  rolloutWindowRow,
  rolloutWindowStateRow,
} from "./options.ts";

function rowOf({
  id,
  name,
  tier,
  createdAt,
  rolloutWindow,
}: Omit<Organization, "byocConfig" | "privateEndpoints">): Row {
  return { id, name, tier, createdAt, ...rolloutWindowRow(rolloutWindow) };
}

export const createOrganization = recordsCommand({
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
    ...idOption,
    createNamespace: switchOption("create the namespace of the records, too, if it does not exist"),
    ...rolloutWindowOption,
    ...tiersFileSetting,
    ...outputOption,
  }),
  check: ({ tier, tiersFile }) => checkTier(tier, tiersFile),
  async run(records, { name, tier, id = randomUUID(), createNamespace, rolloutWindow, output }, io) {
    const organization = { id, name, tier, createdAt: new Date(), rolloutWindow };
    if (createNamespace) await records.createNamespace();
    await createRecord(records, ORGANIZATIONS, id, organizationConfigMap(organization));
    printOne(io, output, rowOf(organization));
  },
});

export const listOrganizations = recordsCommand({
  name: "list",
  summary: "list the organizations",
  examples: ["admin organization list", "admin organization list --output json"],
  options: z.object(outputOption),
  async run(records, { output }, io) {
    const organizations = await listRecords(records, io, ORGANIZATIONS);
    printList(io, output, ["id", "name", "tier", "createdAt"], organizations.map(rowOf));
  },
});

export const showOrganization = recordsCommand({
  name: "show",
  summary: "show an organization, with its services and members",
  examples: ["admin organization show <uuid>", "admin organization show <uuid> --output yaml"],
  arguments: z.object(organizationArgument),
  options: z.object({ ...tiersFileSetting, ...outputOption }),
  async run(records, { organization: id, tiersFile, output }, io) {
    const tiers = readTiers(tiersFile);
    const { record } = await requireRecord(records, ORGANIZATIONS, id);
    const { name, tier: tierName, createdAt, rolloutWindow, byocConfig, privateEndpoints } = record;
    const services = await listRecords(records, io, SERVICES, id);
    const members = await records.get<ConfigMap>(CONFIG_MAPS, membersConfigMapName(id));
    const keys = await records.list<Secret>(SECRETS, "api-key", id);
    const tier = tiers.get(tierName);
    if (!tier) {
      io.err(
        `The tier ${tierName} is not among the tiers known here, which are ${[...tiers.keys()].join(", ")}: give the file of the tiers with --tiers-file.\n`,
      );
    }
    const shown = {
      ...{ id, name, createdAt, tier: tierName },
      defaultCpuMillicores: tier?.defaultSize.cpuMillicores,
      maximumCpuMillicores: tier?.maximumSize.cpuMillicores,
      ...rolloutWindowStateRow(rolloutWindow),
      ...{ byocConfig, privateEndpoints, apiKeys: keys.length },
    };
    printOne(io, output, shown, {
      services: {
        columns: ["id", "name", "namespace"],
        rows: services.map(({ id, name, namespace }) => ({ id, name, namespace })),
      },
      members: { columns: ["userId", "name", "email", "role", "joinedAt"], rows: membersOf(io, members) },
    });
  },
});

export const updateOrganization = recordsCommand({
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
    ...newNameOption,
    ...newRolloutWindowOption,
    ...tiersFileSetting,
    ...outputOption,
  }),
  check({ tier, name, rolloutWindow, tiersFile }) {
    requireChange([tier, name, rolloutWindow], "--tier, --name or --rollout-window");
    if (tier !== undefined) checkTier(tier, tiersFile);
  },
  async run(records, { organization: id, tier, name, rolloutWindow, output }, io) {
    const change = {
      ...(tier === undefined ? {} : { tier }),
      ...(name === undefined ? {} : { name }),
      ...rolloutWindowChange(rolloutWindow),
    };
    const { record } = await changeRecord(records, ORGANIZATIONS, { id }, () => change);
    printOne(io, output, rowOf(record));
  },
});
