import * as z from "zod";
import { CONFIG_MAPS } from "../../../kube/paths.ts";
import { clusterSettings } from "../../../settings/cluster.ts";
import { option, UsageError } from "../../../settings/option.ts";
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
import { findWellFormedService, serviceArgument } from "./find.ts";

export const updateService = defineCommand({
  name: "update",
  summary: "change the name or the rollout window of a service",
  details: "A service without a rollout window of its own has the window of its organization.",
  examples: [
    "admin service update <uuid> --name billing",
    "admin service update <uuid> --rollout-window '{schedule: \"0 2 * * 6\", duration: 4h, timeZone: Europe/Berlin}'",
    "admin service update <uuid> --rollout-window none",
  ],
  arguments: z.object(serviceArgument),
  options: z.object({
    name: option(nonEmptyText.optional(), {
      placeholder: "text",
      description: "its new name",
      flagOnly: true,
    }),
    ...newRolloutWindowOption,
    ...outputOption,
    ...clusterSettings,
  }),
  async run({ service: id, name, rolloutWindow, output, ...cluster }, io) {
    if (name === undefined && rolloutWindow === undefined) {
      throw new UsageError("There is nothing to change: give --name, --rollout-window or both.");
    }
    const change = name === undefined ? {} : { name };
    const before = await withRecords(cluster, io, (records) =>
      untilUndisturbed(`Service ${id}`, async () => {
        const { service, object } = await findWellFormedService(records, id);
        await records.change(CONFIG_MAPS, object, { ...change, ...rolloutWindowChange(rolloutWindow) });
        return service;
      }),
    );
    const { organizationId, namespace } = before;
    printOne(io, output, {
      ...{ id, organizationId, name: before.name, namespace, ...change },
      ...rolloutWindowRow(changedWindow(before.rolloutWindow, rolloutWindow)),
    });
  },
});
