import { KubeClient } from "../../kube/client.ts";
import { systemClock } from "../../runtime/clock.ts";
import { ServerClock } from "../../runtime/server-clock.ts";
import { commandClusterSettings } from "../../settings/cluster.ts";
import type { Options } from "../../settings/option.ts";
import { type CommandDefinition, type CommandSpec, defineCommand } from "../command.ts";
import { Records } from "./records.ts";

/** Declares a command on the records. It also has the options for the cluster and the namespace of the records. */
export function recordsCommand<O extends Options>(
  spec: CommandSpec<O, [records: Records]>,
): CommandDefinition;
export function recordsCommand(spec: CommandSpec<Options, [records: Records]>): CommandDefinition {
  return defineCommand<Options & typeof commandClusterSettings>({
    ...spec,
    options: { ...spec.options, ...commandClusterSettings },
    async run(values, io) {
      const { kubeconfig, context, namespace } = values;
      // This import loads the Kubernetes client library, which is large and which --help does not need.
      const { connect } = await import("../../kube/connection.ts");
      const clock = new ServerClock(systemClock);
      const connection = await connect(kubeconfig, io.signal, { context });
      const client = new KubeClient(connection, (call) => clock.observe(call));
      try {
        const place = { program: io.program, kubeconfig, context, namespace };
        return await spec.run(new Records(client, place, clock, io.signal), values, io);
      } finally {
        await client.close();
      }
    },
  });
}
