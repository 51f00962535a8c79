import { KubeClient, type KubeRequest } from "../../src/kube/client.ts";
import { connect } from "../../src/kube/connection.ts";

const PATIENCE_MS = 20_000;

/**
 * The client of the tests. The program gives a call 5 s, but here one small machine runs the whole cluster, and
 * a test should not fail because the API server is slow once.
 */
export class PatientClient extends KubeClient {
  static async of({ kubeconfig }: { readonly kubeconfig: string }): Promise<PatientClient> {
    return new PatientClient(await connect(kubeconfig));
  }

  override json<T>(request: KubeRequest): Promise<T> {
    return super.json<T>({ timeoutMs: PATIENCE_MS, ...request });
  }
}
