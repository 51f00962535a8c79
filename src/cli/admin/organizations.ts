import { randomUUID } from "node:crypto";
import type { Secret } from "../../kube/objects.ts";
import { SECRETS } from "../../kube/paths.ts";
import { type Organization, organizationConfigMap } from "../../records/organization.ts";
import { writtenWindow } from "../../records/rollout-window.ts";
import { option, UsageError } from "../../settings/option.ts";
import { readTiers, tiersFileSetting } from "../../settings/tiers.ts";
import { nonEmptyText } from "../../settings/values.ts";
import { outputOption, requireChange, switchOption } from "../options.ts";
import { MEMBER_COLUMNS, printList, printOne, type Row } from "../output.ts";
import { recordsCommand } from "./command.ts";
import { ORGANIZATIONS, SERVICES } from "./kinds.ts";
import { membersOf } from "./members.ts";
import {
  idOption,
  newNameOption,
  newWindowOption,
  organizationArgument,
  windowChange,
  windowOption,
  windowRow,
} from "./options.ts";
import { remove } from "./organization-delete.ts";
import { withKnownOutcome } from "./retry.ts";

type Shown = Omit<Organization, "byocConfig" | "privateEndpoints">;

function rowOf({ id, name, tier, createdAt, rolloutWindow: window }: Shown): Row {
  return { id, name, tier, createdAt, ...(window && { rolloutWindow: writtenWindow(window) }) };
}

/** @throws UsageError if there is no such tier */
function checkTier(tier: string, tiersFile: string | undefined): void {
  const tiers = readTiers(tiersFile);
  if (tiers.has(tier)) return;
  const which = tiersFile ? `tiers in ${tiersFile}` : "built-in tiers (--tiers-file names others)";
  throw new UsageError(
    `The tier is ${JSON.stringify(tier)}, but it must be one of the ${which}: ${[...tiers.keys()].join(", ")}.`,
  );
}

const create = recordsCommand({
  name: "admin organization create",
  summary: "create an organization",
  examples: [
    "admin organization create --name 'Acme Corp' --tier basic",
    "admin organization create --name 'Acme Corp' --tier basic --create-namespace --output json",
  ],
  options: {
    name: option(nonEmptyText, { placeholder: "text", description: "name of the organization" }),
    tier: option(nonEmptyText, {
      placeholder: "name",
      description: "tier, which sets the default and the maximum size of the pipes",
    }),
    ...idOption,
    createNamespace: switchOption("create the namespace of the records, too, if it does not exist"),
    ...windowOption,
    ...tiersFileSetting,
    ...outputOption,
  },
  check: ({ tier, tiersFile }) => checkTier(tier, tiersFile),
  async run(records, { name, tier, id = randomUUID(), createNamespace, rolloutWindow, output }, io) {
    const organization = { id, name, tier, createdAt: new Date(), rolloutWindow };
    if (createNamespace) {
      await withKnownOutcome(
        records.createNamespace(),
        `The namespace ${records.namespace} may have been created, but no organization. You can run the command again`,
      );
    }
    await ORGANIZATIONS.create(records, id, organizationConfigMap(organization));
    printOne(io, output, rowOf(organization));
  },
});

const list = recordsCommand({
  name: "admin organization list",
  summary: "list the organizations",
  options: outputOption,
  async run(records, { output }, io) {
    const organizations = await ORGANIZATIONS.list(records, io);
    printList(io, output, ["id", "name", "tier", "createdAt"], organizations.map(rowOf));
  },
});

const show = recordsCommand({
  name: "admin organization show",
  summary: "show an organization, with its services and members",
  options: { ...organizationArgument, ...outputOption },
  async run(records, { organization: id, output }, io) {
    const record = await ORGANIZATIONS.require(records, id);
    const { name, tier, createdAt, rolloutWindow, byocConfig, privateEndpoints } = record;
    const services = await SERVICES.list(records, io, id);
    const members = await membersOf(records, io, id);
    const keys = await records.list<Secret>(SECRETS, "api-key", id);
    const shown = {
      id,
      name,
      createdAt,
      tier,
      ...windowRow(rolloutWindow, records.clock.now()),
      byocConfig,
      privateEndpoints,
      apiKeys: keys.length,
    };
    const rows = services.map(({ id, name, namespace }) => ({ id, name, namespace }));
    printOne(io, output, shown, {
      services: { columns: ["id", "name", "namespace"], rows },
      members: { columns: MEMBER_COLUMNS, rows: members },
    });
  },
});

const changes = {
  tier: option(nonEmptyText.optional(), {
    placeholder: "name",
    description: "new tier",
    flagOnly: true,
  }),
  ...newNameOption,
  ...newWindowOption,
};

const update = recordsCommand({
  name: "admin organization update",
  summary: "change the tier, the name or the rollout window of an organization",
  details:
    "A new tier resizes pipes for which no size was requested, pipes that are larger than the new maximum, and\n" +
    "pipes that the old maximum limited.\n\n" +
    "The rollout window applies to services without a window of their own.",
  examples: [
    "admin organization update <uuid> --tier scale",
    "admin organization update <uuid> --name 'Acme Inc'",
    "admin organization update <uuid> --rollout-window '{schedule: \"0 2 * * 6\", duration: 4h, timeZone: Europe/Berlin}'",
  ],
  options: { ...organizationArgument, ...changes, ...tiersFileSetting, ...outputOption },
  check({ tier, tiersFile, ...values }) {
    requireChange(changes, { tier, ...values });
    if (tier !== undefined) checkTier(tier, tiersFile);
  },
  async run(records, { organization: id, tier, name, rolloutWindow, output }, io) {
    const change = { tier, name, rolloutWindow: windowChange(rolloutWindow) };
    printOne(io, output, rowOf(await ORGANIZATIONS.change(records, id, () => change)));
  },
});

export const organizationCommands = [create, list, show, update, remove];
