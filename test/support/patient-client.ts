import { KubeClient, type KubeRequest } from "../../src/kube/client.ts";
import { connect } from "../../src/kube/connection.ts";

const PATIENCE_MS = 20_000;

/**
 * The eyes and hands of a test. The program gives a call 5 s; but one small machine runs the whole cluster, and
 * maybe starts another one just now: that its API server is slow for once is nothing that a test should fail of.
 */
export class PatientClient extends KubeClient {
  static async of({ kubeconfig }: { readonly kubeconfig: string }): Promise<PatientClient> {
    return new PatientClient(await connect(kubeconfig));
  }

  override json<T>(request: KubeRequest): Promise<T> {
    return super.json<T>({ timeoutMs: PATIENCE_MS, ...request });
  }
}
