import { type EndedCall, KubeClient } from "../../kube/client.ts";
import type { Io } from "../io.ts";
import { Records } from "./records.ts";

/** Does something with a connection of its own. */
export async function withClient<T>(
  kubeconfig: string | undefined,
  act: (client: KubeClient) => Promise<T>,
  onCall?: (call: EndedCall) => void,
): Promise<T> {
  // Loads the client library, which weighs more than all the rest: not for --help.
  const { connect } = await import("../../kube/connection.ts");
  const client = new KubeClient(await connect(kubeconfig), onCall);
  try {
    return await act(client);
  } finally {
    await client.close();
  }
}

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
