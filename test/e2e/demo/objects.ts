import { RESIZE_OUTCOME_ANNOTATION } from "@pipe-scaling/local-cluster/resize-stages";

/** Objects that the demo creates itself; the operator's commands create the others. */

export const ACME_PIPES = "acme-pipes";
export const GLOBEX_PIPES = "globex-pipes";

export const CONTAINER = "pipe";
/** A StatefulSet, whose pods each load a part of a database. The other pipes are Deployments. */
export const LOAD_PIPE = "mysql-initial-load";
export const DATABASE_PIPES = ["postgres-orders", "mysql-billing", "mongodb-events", LOAD_PIPE] as const;
/** The cluster simulates that the node of this pipe can resize no pod in place. */
export const REPLACED_PIPE = "postgres-orders";
export const OTHER_PIPE = "s3-archive";
const REPLICAS = 2;
const LOAD_REPLICAS = 3;

/** A Deployment of the smallest size, or the StatefulSet for the initial load, as a team would write it. */
export function pipe(options: {
  readonly name: string;
  readonly namespace: string;
  readonly serviceId: string;
  readonly type: "database" | "object-storage";
}) {
  const labels = {
    "app.kubernetes.io/name": options.name,
    "pipes.clouddb.dev/service": options.serviceId,
    "pipes.clouddb.dev/type": options.type,
  };
  const isLoad = options.name === LOAD_PIPE;
  return {
    apiVersion: "apps/v1",
    kind: isLoad ? "StatefulSet" : "Deployment",
    metadata: { name: options.name, namespace: options.namespace, labels },
    spec: {
      ...(isLoad
        ? { replicas: LOAD_REPLICAS, serviceName: options.name, podManagementPolicy: "Parallel" }
        : { replicas: REPLICAS }),
      selector: { matchLabels: { "app.kubernetes.io/name": options.name } },
      template: {
        metadata: {
          labels,
          annotations: options.name === REPLACED_PIPE ? { [RESIZE_OUTCOME_ANNOTATION]: "Infeasible" } : {},
        },
        spec: {
          containers: [
            {
              name: CONTAINER,
              image: "clouddb/pipe:1.8.2",
              args: ["replicate", isLoad ? "--mode=initial-load" : "--mode=cdc"],
              env: [{ name: "SOURCE", value: options.name }],
              resources: { requests: { cpu: "1", memory: "4Gi" }, limits: { memory: "4Gi" } },
            },
          ],
        },
      },
    },
  };
}
