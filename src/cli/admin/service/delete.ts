import * as z from "zod";
import { KIND } from "../../../crd/names.ts";
import type { ConfigMap } from "../../../kube/objects.ts";
import { CONFIG_MAPS } from "../../../kube/paths.ts";
import { backupConfigMapName } from "../../../records/backup.ts";
import { parseService } from "../../../records/service.ts";
import { clusterSettings } from "../../../settings/cluster.ts";
import { defineCommand } from "../../command.ts";
import { yesOption } from "../../common-options.ts";
import { confirm } from "../../confirm.ts";
import { withRecords } from "../cluster.ts";
import { unlessChanged } from "../guarded.ts";
import { findService, serviceArgument } from "./find.ts";

export const deleteService = defineCommand({
  name: "delete",
  summary: "delete the record of a service, with its backup settings",
  details:
    `Nothing is resized: its pipes keep the size that they have, and its ${KIND} stays, with that size, until\n` +
    "somebody deletes it with kubectl.",
  examples: ["admin service delete <uuid>", "admin service delete <uuid> --yes"],
  arguments: z.object(serviceArgument),
  options: z.object({ ...yesOption, ...clusterSettings }),
  async run({ service: id, yes, ...cluster }, io) {
    await withRecords(cluster, io, async (records) => {
      const object = await findService(records, id);
      const backup = await records.get<ConfigMap>(CONFIG_MAPS, backupConfigMapName(id));
      const { metadata, data } = object;
      const service = parseService(metadata.name, metadata.labels, data);
      // One that cannot be read can still be deleted.
      const what = service.ok ? `${service.value.name} (${id})` : id;
      await confirm(io, yes, `Delete service ${what}${backup ? " with its backup settings" : ""}?`);
      const end = records.uninterrupted();
      await unlessChanged(`The record of service ${id}`, async () => {
        if (backup) await end.delete(CONFIG_MAPS, backup);
        await end.delete(CONFIG_MAPS, object);
      });
    });
    io.err(`Service ${id} is deleted; its pipes, and its ${KIND}, stay as they are.\n`);
  },
});
