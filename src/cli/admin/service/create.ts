import { randomUUID } from "node:crypto";
import * as z from "zod";
import { CONFIG_MAPS } from "../../../kube/paths.ts";
import { serviceConfigMap } from "../../../records/service.ts";
import { clusterSettings } from "../../../settings/cluster.ts";
import { option } from "../../../settings/option.ts";
import { namespaceName, nonEmptyText } from "../../../settings/values.ts";
import { defineCommand } from "../../command.ts";
import { outputOption } from "../../common-options.ts";
import { printOne } from "../../output.ts";
import { uuid } from "../../values.ts";
import { withRecords } from "../cluster.ts";
import { findOrganization } from "../organization/find.ts";
import { rolloutWindowOption, rolloutWindowRow } from "../rollout-window.ts";

export const createService = defineCommand({
  name: "create",
  summary: "create a service of an organization",
  details:
    "Its pipes are the Deployments of the pipes' namespace that have the labels\n" +
    "pipes.clouddb.dev/service=<id of the service> and pipes.clouddb.dev/type=database.",
  examples: ["admin service create --organization <uuid> --name orders --pipes-namespace acme-pipes"],
  options: z.object({
    organization: option(uuid, { placeholder: "uuid", description: "id of the organization" }),
    name: option(nonEmptyText, { placeholder: "text", description: "name of the service" }),
    pipesNamespace: option(namespaceName, {
      placeholder: "name",
      description: "namespace where the service's pipes run",
    }),
    id: option(uuid.optional(), { placeholder: "uuid", description: "its id; without it a new one" }),
    ...rolloutWindowOption,
    ...outputOption,
    ...clusterSettings,
  }),
  async run(
    { organization, name, pipesNamespace, id = randomUUID(), rolloutWindow, output, ...cluster },
    io,
  ) {
    const service = { id, organizationId: organization, name, namespace: pipesNamespace };
    await withRecords(cluster, io, async (records) => {
      await findOrganization(records, organization);
      await records.create(
        CONFIG_MAPS,
        serviceConfigMap({ ...service, rolloutWindow }),
        `A service with the id ${id} is there already; it was left as it is.`,
      );
    });
    printOne(io, output, { ...service, ...rolloutWindowRow(rolloutWindow) });
  },
});
