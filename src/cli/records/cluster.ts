import { KubeClient } from "../../kube/client.ts";
import type { Io } from "../io.ts";
import { Records } from "./records.ts";

export interface ClusterValues {
  readonly kubeconfig?: string | undefined;
  readonly namespace: string;
}

/** Does something with the records, on a connection of its own. */
export async function withRecords<T>(
  { kubeconfig, namespace }: ClusterValues,
  { signal }: Pick<Io, "signal">,
  act: (records: Records) => Promise<T>,
): Promise<T> {
  // Loads the client library, which weighs more than all the rest: not for --help.
  const { connect } = await import("../../kube/connection.ts");
  const kube = new KubeClient(await connect(kubeconfig));
  try {
    return await act(new Records(kube, namespace, signal));
  } finally {
    await kube.close();
  }
}
