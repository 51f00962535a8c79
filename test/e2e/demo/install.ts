import * as z from "zod";
import { GROUP, PLURAL } from "../../../src/crd/names.ts";
import { KubeClient } from "../../../src/kube/client.ts";
import { connect } from "../../../src/kube/connection.ts";
import { CHART, helm } from "../../chart/tools.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { apply, kubectl } from "../../cluster/kubectl.ts";
import { serviceAccountKubeconfig } from "../../cluster/service-account.ts";
import { namespace } from "./objects.ts";

const RELEASE = "pipe-scaling-operator";
const SYSTEM_NAMESPACE = "pipe-scaling-system";

/** The chart, as an administrator installs it, for pipes in these namespaces. */
export async function install(
  cluster: Cluster,
  pipeNamespaces: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  await apply(cluster, pipeNamespaces.map(namespace));
  const values = `pipes.namespaces={${pipeNamespaces.join(",")}},api.tls.enabled=false`;
  const where = ["--namespace", SYSTEM_NAMESPACE, "--create-namespace"];
  await helm(["install", RELEASE, CHART, ...where, "--set", values], cluster);
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
    (["api", "controller"] as const).map((component) =>
      serviceAccountKubeconfig(cluster, SYSTEM_NAMESPACE, `${RELEASE}-${component}`),
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
