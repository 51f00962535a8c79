import { randomUUID } from "node:crypto";
import * as z from "zod";
import type { Tiers } from "../domain/tier.ts";
import type { ConfigMap } from "../kube/objects.ts";
import { CONFIG_MAPS } from "../kube/paths.ts";
import {
  type Organization,
  organizationConfigMap,
  organizationConfigMapName,
  parseOrganization,
} from "../records/organization.ts";
import { withRecords } from "./cluster.ts";
import { defineCommand } from "./command.ts";
import { clusterOptions, outputOption } from "./common-options.ts";
import { CliError } from "./failure.ts";
import { option, UsageError } from "./option.ts";
import { printList, printOne } from "./output.ts";
import type { Records } from "./records.ts";
import { readTiers, tiersFileOption } from "./tiers.ts";
import { nonEmptyText, onOff, uuid } from "./values.ts";
import { wellFormed } from "./well-formed.ts";

export const createOrganization = defineCommand({
  name: "create",
  summary: "create an organization",
  examples: [
    "organization create --name 'Acme Corp' --tier basic",
    "organization create --name 'Acme Corp' --tier basic --create-namespace --output json",
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
    ...tiersFileOption,
    ...outputOption,
    ...clusterOptions,
  }),
  async run({ name, tier, id = randomUUID(), createNamespace, tiersFile, output, ...cluster }, io) {
    checkTier(tier, readTiers(tiersFile));
    const organization = { id, name, tier, createdAt: new Date() };
    await withRecords(cluster, async (records) => {
      if (createNamespace) await records.createNamespace();
      await records.create(
        CONFIG_MAPS,
        organizationConfigMap(organization),
        `An organization with the id ${id} is there already; it was left as it is.`,
      );
    });
    printOne(io, output, organization);
  },
});

function checkTier(tier: string, tiers: Tiers): void {
  if (tiers.has(tier)) return;
  throw new UsageError(
    `--tier (or PIPE_SCALING_TIER) is ${JSON.stringify(tier)}, but it must be one of the tiers: ${[...tiers.keys()].join(", ")}.`,
  );
}

export const listOrganizations = defineCommand({
  name: "list",
  summary: "list the organizations",
  examples: ["organization list", "organization list --output json"],
  options: z.object({ ...outputOption, ...clusterOptions }),
  async run({ output, ...cluster }, io) {
    const objects = await withRecords(cluster, (records) =>
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

/** @throws CliError when there is none of that id, or its record is malformed */
export async function requireOrganization(records: Records, id: string): Promise<Organization> {
  const object = await records.get<ConfigMap>(CONFIG_MAPS, organizationConfigMapName(id));
  if (!object) {
    await records.requireNamespace();
    throw new CliError(
      `There is no organization with the id ${id} in the namespace ${records.namespace}: see organization list, or make it with organization create --id ${id}.`,
    );
  }
  const parsed = parseOrganization(object.metadata.name, object.data);
  if (parsed.ok) return parsed.value;
  throw new CliError(
    `The record of organization ${id} is malformed, put it right first (kubectl edit configmap ${object.metadata.name} --namespace ${records.namespace}): ${parsed.problem}.`,
  );
}
