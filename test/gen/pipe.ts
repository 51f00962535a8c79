import { SERVICE_LABEL, TYPE_LABEL } from "../../src/controller/names.ts";

export interface PipeOptions {
  readonly name: string;
  readonly namespace: string;
  readonly serviceId: string;
  readonly cores?: number;
  readonly replicas?: number;
  readonly type?: string;
  readonly strategy?: "RollingUpdate" | "Recreate";
  readonly rollingUpdate?: { readonly maxSurge: number | string; readonly maxUnavailable: number | string };
  readonly containers?: readonly string[];
  readonly annotations?: Readonly<Record<string, string>>;
  readonly podAnnotations?: Readonly<Record<string, string>>;
  readonly podLabels?: Readonly<Record<string, string>>;
  readonly progressDeadlineSeconds?: number;
}

/** The Deployment of a pipe as its owner deploys it. */
export function pipeDeployment(options: PipeOptions) {
  const {
    name,
    namespace,
    serviceId,
    cores,
    replicas = 1,
    type = "database",
    containers = ["pipe"],
  } = options;
  const amounts = cores === undefined ? undefined : { cpu: `${cores}`, memory: `${cores * 4}Gi` };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: {
      name,
      namespace,
      labels: { [SERVICE_LABEL]: serviceId, [TYPE_LABEL]: type },
      annotations: options.annotations ?? {},
    },
    spec: {
      replicas,
      selector: { matchLabels: { app: name } },
      strategy: {
        type: options.strategy ?? "RollingUpdate",
        ...(options.rollingUpdate ? { rollingUpdate: options.rollingUpdate } : {}),
      },
      ...(options.progressDeadlineSeconds === undefined
        ? {}
        : { progressDeadlineSeconds: options.progressDeadlineSeconds }),
      template: {
        metadata: { labels: { app: name, ...options.podLabels }, annotations: options.podAnnotations ?? {} },
        spec: {
          terminationGracePeriodSeconds: 0,
          containers: containers.map((container) => ({
            name: container,
            image: "registry.example/pipe:1",
            ...(amounts ? { resources: { requests: amounts, limits: { memory: amounts.memory } } } : {}),
          })),
        },
      },
    },
  };
}
