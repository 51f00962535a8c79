import type { ConfigMap, Secret } from "../../kube/objects.ts";
import { CONFIG_MAPS, SECRETS } from "../../kube/paths.ts";
import { backupConfigMapName } from "../../records/backup.ts";
import { ORGANIZATION_LABEL, RESOURCE_LABEL, type RecordKind } from "../../records/labels.ts";
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
    "do not change: they keep their size.",
  examples: ["admin organization delete <uuid>", "admin organization delete <uuid> --with-services --yes"],
  options: {
    ...organizationArgument,
    withServices: switchOption("delete the records of its services too, with their backup settings"),
    ...yesOption,
  },
  async run(records, { organization: id, withServices, yes }, io) {
    const before = await recordsOf(records, id);
    const { organization, keys, services, members } = before;
    if (services.length > 0 && !withServices) {
      const list = programCommand(records.place, `admin service list --organization ${id}`);
      throw new CliError(
        `Organization ${id} has ${counted(services.length, "service")}, so nothing was deleted. Delete the services first (\`${list}\`), or specify --with-services.`,
      );
    }
    const also = [
      ...(services.length > 0 ? [counted(services.length, "service")] : []),
      counted(keys.length, "API key"),
      counted(members.length, "member"),
    ];
    await confirm(io, yes, `Delete ${ORGANIZATIONS.describe(organization, id)} with ${also.join(", ")}?`);
    const what = `A record of organization ${id}`;
    // The question can stay open for minutes. Without this check, the first deletions would precede a conflict.
    const now = await recordsOf(records, id);
    requireUnchanged(what, before.confirmed, now.confirmed);
    await deleteUnlessChanged(records, what, [
      ...now.keys.map((object) => ({ resource: SECRETS, object })),
      ...now.others.map((object) => ({ resource: CONFIG_MAPS, object })),
      // The API writes the times of the last use again and again while keys are in use.
      ...now.usage.map((object) => ({ resource: CONFIG_MAPS, object, isAnyVersion: true })),
      // The organization is the last, so that the command can be repeated if it fails half-way.
      { resource: CONFIG_MAPS, object: now.organization },
    ]);
    io.err(`Organization ${id} is deleted.\n`);
  },
});

/** @throws CliError if there is no organization with this ID */
async function recordsOf(records: Records, id: string) {
  const organization = await ORGANIZATIONS.requireObject(records, id);
  const configMaps = ownedBy(id, await records.list<ConfigMap>(CONFIG_MAPS, undefined));
  const keys = await records.list<Secret>(SECRETS, "api-key", id);
  const isOfKind = (kind: RecordKind, { metadata }: ConfigMap) => metadata.labels?.[RESOURCE_LABEL] === kind;
  const usage = configMaps.filter((each) => isOfKind("key-usage", each));
  const others = configMaps.filter(
    (each) => each.metadata.uid !== organization.metadata.uid && !usage.includes(each),
  );
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
    confirmed: [organization, ...keys, ...others],
  };
}

/**
 * The records of an organization. Backup settings belong to the organization of their service: if a person moves the
 * service to another organization, the label of the settings still names the earlier one.
 *
 * @param configMaps the records of all organizations
 */
function ownedBy(id: string, configMaps: readonly ConfigMap[]): ConfigMap[] {
  const labeled = ({ metadata }: ConfigMap) => metadata.labels?.[ORGANIZATION_LABEL];
  const backupOwners = new Map(
    configMaps.flatMap((each) => {
      const serviceId = serviceIdOf(each.metadata.name);
      return serviceId === undefined ? [] : [[backupConfigMapName(serviceId), labeled(each)]];
    }),
  );
  return configMaps.filter((each) => {
    const { name } = each.metadata;
    return (backupOwners.has(name) ? backupOwners.get(name) : labeled(each)) === id;
  });
}
