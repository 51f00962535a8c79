import { canonicalUuid } from "../../domain/identifiers.ts";
import type { ConfigMap, Secret } from "../../kube/objects.ts";
import { CONFIG_MAPS, SECRETS } from "../../kube/paths.ts";
import { type RecordKind, recordsNamedAfter } from "../../records/kinds.ts";
import { ORGANIZATION_LABEL, RESOURCE_LABEL } from "../../records/labels.ts";
import { organizationConfigMapName, organizationIdOf } from "../../records/organization.ts";
import { serviceIdOf } from "../../records/service.ts";
import { confirm } from "../confirm.ts";
import { CliError } from "../failure.ts";
import { programCommand, switchOption, yesOption } from "../options.ts";
import { counted } from "../view/text.ts";
import { recordsCommand } from "./command.ts";
import { ORGANIZATIONS } from "./kinds.ts";
import { organizationArgument } from "./options.ts";
import type { Records } from "./records.ts";
import { deleteUnlessChanged, requireUnchanged } from "./retry.ts";

export const remove = recordsCommand({
  name: "admin organization delete",
  summary: "delete an organization, with its members and API keys",
  details:
    "An organization with services is not deleted, unless you specify --with-services. Pipes and PipeScalings\n" +
    "do not change: they keep their size. If the organization is already deleted, the command deletes its\n" +
    "remaining records.",
  examples: ["admin organization delete <uuid>", "admin organization delete <uuid> --with-services --yes"],
  options: {
    ...organizationArgument,
    withServices: switchOption("delete the records of its services too, with their settings"),
    ...yesOption,
  },
  async run(records, { organization: id, withServices, yes }, io) {
    const before = await recordsOf(records, id);
    const { organization, keys, services, members, all } = before;
    if (all.length === 0) await ORGANIZATIONS.requireObject(records, id);
    if (services.length > 0 && !withServices) {
      const list = programCommand(records.place, `admin service list --organization ${id}`);
      throw new CliError(
        `Organization ${id} has ${counted(services.length, "service")}, so nothing was deleted. Delete the services first (\`${list}\`), or specify --with-services.`,
      );
    }
    const subject = organization
      ? ORGANIZATIONS.describe(organization, id)
      : `${counted(all.length, "record")} that organization ${id} has left,`;
    const also = [
      ...(services.length > 0 ? [counted(services.length, "service")] : []),
      counted(keys.length, "API key"),
      counted(members.length, "member"),
    ];
    await confirm(io, yes, `Delete ${subject} with ${also.join(", ")}?`);
    const what = `A record of organization ${id}`;
    // A person may take minutes to answer. Without this check, a conflict could follow after the first deletions.
    const now = await recordsOf(records, id);
    requireUnchanged(what, before.confirmed, now.confirmed);
    const deletions = [
      ...now.keys.map((object) => ({ resource: SECRETS, object })),
      ...now.others.map((object) => ({ resource: CONFIG_MAPS, object })),
      // The API writes the times of the last use again and again while keys are in use.
      ...now.usage.map((object) => ({ resource: CONFIG_MAPS, object, isAnyVersion: true })),
      // The organization is the last, so that the command can be repeated if it fails half-way.
      ...(now.organization ? [{ resource: CONFIG_MAPS, object: now.organization }] : []),
    ];
    await deleteUnlessChanged(records, what, deletions, async (end) =>
      (await recreatedRecords(end, id, now.services)).map((object) => ({ resource: CONFIG_MAPS, object })),
    );
    io.err(`Organization ${id} is deleted.\n`);
  },
});

/** Reads the records of an organization, whose own record may already be deleted. */
async function recordsOf(records: Records, id: string) {
  const configMaps = await records.configMaps();
  const keys = await records.list<Secret>(SECRETS, "api-key", id);
  const organization = configMaps.find(({ metadata }) => metadata.name === organizationConfigMapName(id));
  const owned = ownedBy(id, configMaps).filter((each) => each !== organization);
  const kinds = recordsNamedAfter("organization", id);
  const isOfKind = (kind: RecordKind, { metadata: { name, labels } }: ConfigMap) =>
    (kinds.get(name) ?? labels?.[RESOURCE_LABEL]) === kind;
  const usage = owned.filter((each) => isOfKind("key-usage", each));
  const others = owned.filter((each) => !usage.includes(each));
  const confirmed = [...(organization ? [organization] : []), ...keys, ...others];
  return {
    organization,
    keys,
    services: others.filter((each) => isOfKind("service", each)),
    members: others
      .filter((each) => isOfKind("members", each))
      .flatMap(({ data }) => Object.keys(data ?? {})),
    usage,
    /** The ConfigMaps except the organization's own and the usage of its keys. */
    others,
    /** The records that a person confirms: all except the usage of the keys. */
    confirmed,
    all: [...confirmed, ...usage],
  };
}

/**
 * Returns the ConfigMaps that belong to an organization. The API reads records by their names, so the ID in the name
 * determines the organization or the service that owns a record. The label of a service record names its organization.
 * Other labels may be missing or outdated: after a person moves a service to another organization, the label of its
 * backup settings still names the earlier one. A record named after this organization is kept if its label names
 * another one.
 *
 * @param configMaps all ConfigMaps in the namespace
 */
function ownedBy(id: string, configMaps: readonly ConfigMap[]): ConfigMap[] {
  const isRecord = ({ metadata }: ConfigMap) => metadata.labels?.[RESOURCE_LABEL] !== undefined;
  const labeled = ({ metadata }: ConfigMap) => metadata.labels?.[ORGANIZATION_LABEL];
  const ofServices = new Map(
    configMaps.filter(isRecord).flatMap((each) => {
      const serviceId = serviceIdOf(each.metadata.name);
      return serviceId === undefined
        ? []
        : namesOf("service", serviceId).map((name) => [name, labeled(each)]);
    }),
  );
  const organizations = configMaps.flatMap((each) => organizationIdOf(each.metadata.name) ?? []);
  const owners = new Map(
    [id, ...organizations].flatMap((owner) => namesOf("organization", owner).map((name) => [name, owner])),
  );
  return configMaps.filter((each) => {
    const { name } = each.metadata;
    if (ofServices.has(name)) return ofServices.get(name) === id;
    if (owners.has(name)) return owners.get(name) === id && !isOfAnother(id, each);
    return isRecord(each) && labeled(each) === id;
  });
}

function namesOf(...owner: Parameters<typeof recordsNamedAfter>): string[] {
  return [...recordsNamedAfter(...owner).keys()];
}

function isOfAnother(id: string, { metadata: { labels } }: ConfigMap): boolean {
  const label = labels?.[ORGANIZATION_LABEL] ?? "";
  return label !== "" && canonicalUuid(label) !== id;
}

/**
 * The records that were created while the organization was deleted. The API creates key usage and backup settings
 * until it learns that the organization and the services are gone.
 *
 * @param services the deleted ones
 */
async function recreatedRecords(
  records: Records,
  id: string,
  services: readonly ConfigMap[],
): Promise<ConfigMap[]> {
  const configMaps = await records.configMaps();
  const existing = new Set(configMaps.map(({ metadata }) => metadata.name));
  const ofServices = services.flatMap(({ metadata: { name } }) => {
    const serviceId = existing.has(name) ? undefined : serviceIdOf(name);
    return serviceId === undefined ? [] : namesOf("service", serviceId);
  });
  const isBack = existing.has(organizationConfigMapName(id));
  const names = [...(isBack ? [] : namesOf("organization", id)), ...ofServices];
  return configMaps.filter((each) => names.includes(each.metadata.name) && !isOfAnother(id, each));
}
