import { type EndedCall, KubeClient } from "../../kube/client.ts";

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
