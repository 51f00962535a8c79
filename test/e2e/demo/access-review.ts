import * as z from "zod";
import { KubeClient } from "../../../src/kube/client.ts";
import { connect } from "../../../src/kube/connection.ts";

interface Action {
  readonly namespace: string;
  readonly verb: string;
  readonly resource: string;
  readonly group?: string;
}

const review = z.object({ status: z.object({ allowed: z.boolean() }) });

/** Asks the API server if an account has a permission. */
export async function mayDo(kubeconfig: string, action: Action, signal: AbortSignal): Promise<boolean> {
  const kube = new KubeClient(await connect(kubeconfig));
  try {
    const response = await kube.json({
      method: "POST",
      path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
      body: {
        apiVersion: "authorization.k8s.io/v1",
        kind: "SelfSubjectAccessReview",
        spec: { resourceAttributes: action },
      },
      signal,
    });
    return review.parse(response).status.allowed;
  } finally {
    await kube.close();
  }
}
