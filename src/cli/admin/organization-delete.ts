import * as z from "zod";
import type { ConfigMap, Secret } from "../../kube/objects.ts";
import { CONFIG_MAPS, SECRETS } from "../../kube/paths.ts";
import type { RecordKind } from "../../records/labels.ts";
import { switchOption, yesOption } from "../common-options.ts";
import { confirm } from "../confirm.ts";
import { CliError } from "../failure.ts";
import { recordsCommand } from "./command.ts";
import { ORGANIZATIONS, organizationArgument, requireRecord } from "./kinds.ts";
import type { Records } from "./records.ts";
import { deleteUnlessChanged } from "./retry.ts";

export const deleteOrganization = recordsCommand({
  name: "delete",
  summary: "delete an organization, with its members and API keys",
  details:
    "One that has services is left as it is, unless they are to be deleted too. Pipes are never touched:\n" +
    "they keep the size that they have, and so do the PipeScalings.",
  examples: ["admin organization delete <uuid>", "admin organization delete <uuid> --with-services --yes"],
  arguments: z.object(organizationArgument),
  options: z.object({
    withServices: switchOption("delete the records of its services too, with their backup settings"),
    ...yesOption,
  }),
  async run(records, { organization: id, withServices, yes }, io) {
    const { record, object } = await requireRecord(records, ORGANIZATIONS, id);
    const { keys, services, members, others } = await recordsOf(records, id);
    if (services.length > 0 && !withServices) {
      throw new CliError(
        `Organization ${id} has ${count(services, "service")}, and nothing was deleted: delete them first (admin service list --organization ${id}), or give --with-services.`,
      );
    }
    const entries = members.flatMap(({ data = {} }) => Object.keys(data));
    const also = [
      ...(services.length > 0 ? [count(services, "service")] : []),
      count(keys, "API key"),
      count(entries, "member"),
    ];
    await confirm(io, yes, `Delete organization ${record.name} (${id}) with ${also.join(", ")}?`);
    // The organization is the last, so that the command can be repeated if it fails half-way.
    const end = records.uninterrupted();
    await deleteUnlessChanged(`A record of organization ${id}`, async () => {
      for (const key of keys) await end.delete(SECRETS, key);
      for (const each of [...services, ...members, ...others, object]) await end.delete(CONFIG_MAPS, each);
    });
    await requireNothingLeft(end, id);
    io.err(`Organization ${id} is deleted.\n`);
  },
});

async function recordsOf(records: Records, id: string) {
  const configMaps = (kind: RecordKind) => records.list<ConfigMap>(CONFIG_MAPS, kind, id);
  return {
    keys: await records.list<Secret>(SECRETS, "api-key", id),
    services: await configMaps("service"),
    members: await configMaps("members"),
    others: [...(await configMaps("backup")), ...(await configMaps("key-usage"))],
  };
}

/** Others may have created records of the organization while it was deleted. */
async function requireNothingLeft(records: Records, id: string): Promise<void> {
  const { keys, services, members } = await recordsOf(records, id);
  const left = [
    ...keys.map(({ metadata }) => `secret/${metadata.name}`),
    ...[...services, ...members].map(({ metadata }) => `configmap/${metadata.name}`),
  ];
  if (left.length === 0) return;
  throw new CliError(
    `Organization ${id} is deleted, but others have created objects for it meanwhile: check them, and delete them with kubectl delete --namespace ${records.namespace} ${left.join(" ")}.`,
  );
}

function count(things: readonly unknown[], name: string): string {
  return `${things.length} ${name}${things.length === 1 ? "" : "s"}`;
}
