import * as z from "zod";
import { KubeClient } from "../../kube/client.ts";
import { clusterSettings } from "../../settings/cluster.ts";
import { type CommandDefinition, type CommandText, defineCommand } from "../command.ts";
import type { Io } from "../io.ts";
import { Records } from "./records.ts";

interface RecordsCommand<S extends z.ZodObject, A extends z.ZodObject> extends CommandText {
  readonly arguments?: A;
  readonly options: S;
  /** Throws UsageError for values that do not fit together, before it connects. */
  check?(values: z.output<S> & z.output<A>): void;
  /** @returns the exit code if it is not 0 (exit-codes.ts) */
  // biome-ignore lint/suspicious/noConfusingVoidType: most commands return nothing, which is 0
  run(records: Records, values: z.output<S> & z.output<A>, io: Io): Promise<number | void>;
}

const NONE = z.object({});

/** Declares a command on the records. It also has the options for the cluster and the namespace of the records. */
export function recordsCommand<S extends z.ZodObject, A extends z.ZodObject = typeof NONE>(
  spec: RecordsCommand<S, A>,
): CommandDefinition;
export function recordsCommand(spec: RecordsCommand<z.ZodObject, z.ZodObject>): CommandDefinition {
  return defineCommand({
    ...spec,
    options: z.object({ ...spec.options.shape, ...clusterSettings }),
    async run(values, io) {
      spec.check?.(values);
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
