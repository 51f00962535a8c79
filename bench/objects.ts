import { randomUUID } from "node:crypto";
import { SERVICE_LABEL, TYPE_LABEL } from "../src/controller/names.ts";
import { apiKeySecret, newCredentials } from "../src/records/api-key.ts";
import { organizationConfigMap } from "../src/records/organization.ts";
import { serviceConfigMap } from "../src/records/service.ts";

/** The objects that benchmarks create, without the namespaces of the records. */

const CREATED_AT = new Date("2026-01-31T12:00:00Z");

export function organizationRecord(id: string, tier: string) {
  return organizationConfigMap({ id, name: "Acme", createdAt: CREATED_AT, tier });
}

/** @param namespace of the service's pipes */
export function serviceRecord(id: string, organizationId: string, namespace: string) {
  return serviceConfigMap({ id, organizationId, name: "orders", namespace });
}

/** The Secret of an API key, and the Authorization header for it. */
export function apiKey(organizationId: string) {
  const credentials = newCredentials();
  const key = {
    id: randomUUID(),
    organizationId,
    name: "bench",
    roles: ["admin"],
    createdAt: CREATED_AT,
    expireAt: undefined,
    ipAccessList: [],
  };
  const basic = Buffer.from(`${credentials.keyId}:${credentials.keySecret}`).toString("base64");
  return { record: apiKeySecret(key, credentials), authorization: `Basic ${basic}` };
}

interface PipeOptions {
  readonly replicas: number;
  /** The pods have the labels of the pipe, so that they can be resized in place. */
  readonly hasLabeledPods?: boolean;
}

/** A pipe of one CPU and 4 Gi. */
export function pipeDeployment(
  name: string,
  namespace: string,
  serviceId: string,
  { replicas, hasLabeledPods = false }: PipeOptions,
) {
  const labels = { [SERVICE_LABEL]: serviceId, [TYPE_LABEL]: "database" };
  const amounts = { cpu: "1", memory: "4Gi" };
  const container = {
    name: "pipe",
    image: "registry.example/pipe:1",
    resources: { requests: amounts, limits: { memory: amounts.memory } },
  };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace, labels },
    spec: {
      replicas,
      selector: { matchLabels: { app: name } },
      strategy: { type: "RollingUpdate" },
      template: {
        metadata: { labels: { app: name, ...(hasLabeledPods ? labels : {}) } },
        spec: { terminationGracePeriodSeconds: 0, containers: [container] },
      },
    },
  };
}
