import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as z from "zod";
import { GROUP, PLURAL } from "../../../src/crd/names.ts";
import { KubeClient } from "../../../src/kube/client.ts";
import { connect } from "../../../src/kube/connection.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { apply, kubectl } from "../../cluster/kubectl.ts";
import { serviceAccountKubeconfig } from "../../cluster/service-account.ts";
import { ACME_PIPES, GLOBEX_PIPES, namespace, RECORDS_NAMESPACE } from "./objects.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** The CRD, the namespaces and the rights: all that an administrator installs. */
export async function install(cluster: Cluster, signal: AbortSignal): Promise<void> {
  await kubectl(cluster, ["apply", "--server-side", "-f", join(ROOT, "crds")], { signal });
  await kubectl(cluster, ["apply", "--server-side", "-f", join(ROOT, "deploy", "rbac")], { signal });
  await apply(cluster, [ACME_PIPES, GLOBEX_PIPES].map(namespace));
  await kubectl(cluster, ["wait", "--for=condition=Established", `crd/${PLURAL}.${GROUP}`, "--timeout=30s"], {
    signal,
  });
}

export interface Accounts {
  readonly api: string;
  readonly controller: string;
}

/** Kubeconfigs by which the two processes are who they would be in a pod. */
export async function accounts(cluster: Cluster): Promise<Accounts> {
  const [api, controller] = await Promise.all(
    (["pipe-scaling-api", "pipe-scaling-controller"] as const).map((name) =>
      serviceAccountKubeconfig(cluster, RECORDS_NAMESPACE, name),
    ),
  );
  if (api === undefined || controller === undefined) throw new Error("two accounts were asked for");
  return { api, controller };
}

interface Action {
  readonly namespace: string;
  readonly verb: string;
  readonly resource: string;
  readonly group?: string;
}

const review = z.object({ status: z.object({ allowed: z.boolean() }) });

/** Asks the API server whether an account may do something. */
export async function mayDo(kubeconfig: string, action: Action, signal: AbortSignal): Promise<boolean> {
  const kube = new KubeClient(await connect(kubeconfig));
  try {
    const answer = await kube.json({
      method: "POST",
      path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
      body: {
        apiVersion: "authorization.k8s.io/v1",
        kind: "SelfSubjectAccessReview",
        spec: { resourceAttributes: action },
      },
      signal,
    });
    return review.parse(answer).status.allowed;
  } finally {
    await kube.close();
  }
}
