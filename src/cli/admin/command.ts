import * as z from "zod";
import { KubeClient } from "../../kube/client.ts";
import { clusterSettings } from "../../settings/cluster.ts";
import { type CommandDefinition, type CommandSpec, defineCommand, type NONE } from "../command.ts";
import { Records } from "./records.ts";

type RecordsCommand<S extends z.ZodObject, A extends z.ZodObject> = CommandSpec<S, A, [records: Records]>;

/** Declares a command on the records. It also has the options for the cluster and the namespace of the records. */
export function recordsCommand<S extends z.ZodObject, A extends z.ZodObject = typeof NONE>(
  spec: RecordsCommand<S, A>,
): CommandDefinition;
export function recordsCommand(spec: RecordsCommand<z.ZodObject, z.ZodObject>): CommandDefinition {
  return defineCommand({
    ...spec,
    options: z.object({ ...spec.options.shape, ...clusterSettings }),
    async run(values, io) {
      const { kubeconfig, namespace } = values;
      // Loads the client library, which weighs more than all the rest: not for --help.
      const { connect } = await import("../../kube/connection.ts");
      const client = new KubeClient(await connect(kubeconfig));
      try {
        return await spec.run(new Records(client, namespace, io.signal), values, io);
      } finally {
        await client.close();
      }
    },
  });
}
