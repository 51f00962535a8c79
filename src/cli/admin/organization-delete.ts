import * as z from "zod";
import type { ConfigMap, Secret } from "../../kube/objects.ts";
import { CONFIG_MAPS, SECRETS } from "../../kube/paths.ts";
import type { RecordKind } from "../../records/labels.ts";
import { clusterSettings } from "../../settings/cluster.ts";
import { option } from "../../settings/option.ts";
import { onOff } from "../../settings/values.ts";
import { defineCommand } from "../command.ts";
import { yesOption } from "../common-options.ts";
import { confirm } from "../confirm.ts";
import { CliError } from "../failure.ts";
import { withRecords } from "./connection.ts";
import { findOrganization, organizationArgument } from "./find.ts";
import type { Records } from "./records.ts";
import { unlessChanged } from "./retry.ts";

export const deleteOrganization = defineCommand({
  name: "delete",
  summary: "delete an organization, with its members and API keys",
  details:
    "One that has services is left as it is, unless they are to be deleted too. Pipes are never touched:\n" +
    "they keep the size that they have, and so do the PipeScalings.",
  examples: ["admin organization delete <uuid>", "admin organization delete <uuid> --with-services --yes"],
  arguments: z.object(organizationArgument),
  options: z.object({
    withServices: option(onOff, {
      description: "delete the records of its services too, with their backup settings",
      default: "false",
    }),
    ...yesOption,
    ...clusterSettings,
  }),
  async run({ organization: id, withServices, yes, ...cluster }, io) {
    await withRecords(cluster, io, async (records) => {
      const { organization, object } = await findOrganization(records, id);
      const belongings = await findBelongings(records, id);
      const { keys, services, members } = belongings;
      if (services.length > 0 && !withServices) {
        throw new CliError(
          `Organization ${id} has ${count(services, "service")}, and nothing was deleted: delete them first (admin service list --organization ${id}), or give --with-services.`,
        );
      }
      const also = [
        ...(services.length > 0 ? [count(services, "service")] : []),
        count(keys, "API key"),
        count(
          members.flatMap(({ data = {} }) => Object.keys(data)),
          "member",
        ),
      ];
      await confirm(io, yes, `Delete organization ${organization.name} (${id}) with ${also.join(", ")}?`);
      // Begun, it goes on to the end; broken off all the same, it can be repeated, for the organization is last.
      const end = records.uninterrupted();
      await unlessChanged(`A record of organization ${id}`, async () => {
        for (const key of keys) await end.delete(SECRETS, key);
        for (const each of [...services, ...members, ...belongings.others])
          await end.delete(CONFIG_MAPS, each);
        await end.delete(CONFIG_MAPS, object);
      });
      await requireNothingLeft(end, id);
      io.err(`Organization ${id} is deleted.\n`);
    });
  },
});

interface Belongings {
  readonly keys: readonly Secret[];
  readonly services: readonly ConfigMap[];
  readonly members: readonly ConfigMap[];
  /** Records that are useless without the organization and its services. */
  readonly others: readonly ConfigMap[];
}

async function findBelongings(records: Records, id: string): Promise<Belongings> {
  const configMaps = (kind: RecordKind) => records.list<ConfigMap>(CONFIG_MAPS, kind, id);
  return {
    keys: await records.list<Secret>(SECRETS, "api-key", id),
    services: await configMaps("service"),
    members: await configMaps("members"),
    others: [...(await configMaps("backup")), ...(await configMaps("key-usage"))],
  };
}

/** Somebody may have made something for it while it went. */
async function requireNothingLeft(records: Records, id: string): Promise<void> {
  const { keys, services, members } = await findBelongings(records, id);
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
