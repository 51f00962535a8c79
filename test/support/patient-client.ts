import { KubeClient, type KubeRequest } from "../../src/kube/client.ts";
import { connect } from "../../src/kube/connection.ts";

const PATIENCE_MS = 20_000;

/**
 * The client of the tests. Its timeout is longer than the 5 s of the program, because here one small machine runs the
 * whole cluster.
 */
export class PatientClient extends KubeClient {
  static async of({ kubeconfig }: { readonly kubeconfig: string }): Promise<PatientClient> {
    return new PatientClient(await connect(kubeconfig));
  }

  override json<T>(request: KubeRequest): Promise<T> {
    return super.json<T>({ timeoutMs: PATIENCE_MS, ...request });
  }
}
