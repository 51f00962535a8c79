import type { Io } from "../io.ts";
import { Records } from "./records.ts";
import { withClient } from "./with-client.ts";

export interface ClusterValues {
  readonly kubeconfig?: string | undefined;
  readonly namespace: string;
}

/** Does something with the records, on a connection of its own. */
export function withRecords<T>(
  { kubeconfig, namespace }: ClusterValues,
  { signal }: Pick<Io, "signal">,
  act: (records: Records) => Promise<T>,
): Promise<T> {
  return withClient(kubeconfig, (client) => act(new Records(client, namespace, signal)));
}
