import * as z from "zod";
import {
  CPU_MAXIMUM_MILLICORES,
  CPU_MINIMUM_MILLICORES,
  CPU_STEP_MILLICORES,
} from "../../src/domain/size.ts";
import { BUILT_IN_TIERS } from "../../src/domain/tier.ts";
import { apiSettings } from "../../src/settings/api.ts";
import { chartSchema } from "../../src/settings/chart.ts";
import { controllerSettings } from "../../src/settings/controller.ts";
import { inChart, namespaceName } from "../../src/settings/values.ts";

/*
 * The only declaration of the chart's values: names, types, bounds, defaults and descriptions. generate.ts derives
 * values.schema.json, values.yaml and the table in the chart's README from it. Rules between two values are in
 * templates/_validate.tpl, because a template can explain the error in a sentence.
 */

/** A section of related values. */
function group<S extends z.core.$ZodLooseShape>(description: string, shape: S) {
  return z.strictObject(shape).describe(description).optional();
}

/** A map of strings with free keys, such as labels. */
function texts(description: string) {
  return z.record(z.string(), z.string()).default({}).describe(description);
}

function text(description: string) {
  return z.string().default("").describe(description);
}

function off(description: string) {
  return z.boolean().default(false).describe(description);
}

function on(description: string) {
  return z.boolean().default(true).describe(description);
}

function integer(least: number, most: number, standard: number, description: string) {
  return z.int().min(least).max(most).default(standard).describe(description);
}

function duration(standard: string, description: string) {
  return z
    .string()
    .regex(/^[0-9]{1,9}(ms|s|m|h)$/)
    .default(standard)
    .describe(description);
}

/** A part of the Kubernetes API, which the API server validates. */
function kubernetes(description: string) {
  return z.looseObject({}).default({}).describe(description);
}

const quantity = (description: string) =>
  z
    .union([z.string().regex(/^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$/), z.number().nonnegative()])
    .optional()
    .describe(description);

const millicores = z
  .int()
  .min(CPU_MINIMUM_MILLICORES)
  .max(CPU_MAXIMUM_MILLICORES)
  .multipleOf(CPU_STEP_MILLICORES);

const tier = z.strictObject({
  defaultCpuMillicores: millicores.describe("CPU of each replica while no size is requested."),
  maximumCpuMillicores: millicores.describe(
    "Maximum CPU of each replica; a larger request is reduced to it.",
  ),
});

const builtInTiers = Object.fromEntries(
  [...BUILT_IN_TIERS.values()].map(({ name, defaultSize, maximumSize }) => [
    name,
    { defaultCpuMillicores: defaultSize.cpuMillicores, maximumCpuMillicores: maximumSize.cpuMillicores },
  ]),
);

const toleration = z
  .strictObject({
    key: z.string().optional().describe("Key of the taint; all keys if omitted."),
    operator: z.enum(["Exists", "Equal"]).optional().describe("Operator that compares the value."),
    value: z.string().optional().describe("Value of the taint."),
    effect: z
      .enum(["NoSchedule", "PreferNoSchedule", "NoExecute"])
      .optional()
      .describe("Effect of the taint; all effects if omitted."),
    tolerationSeconds: z
      .int()
      .optional()
      .describe("Time that the pod stays on a node with a NoExecute taint."),
  })
  .describe("A toleration of the pods.");

const spread = z
  .strictObject({
    topologyKey: z.string().describe("Node label whose values define the topology domains."),
    maxSkew: z.int().min(1).describe("Maximum difference in the number of pods between two domains."),
    whenUnsatisfiable: z
      .enum(["ScheduleAnyway", "DoNotSchedule"])
      .describe("Scheduling behavior if a pod does not satisfy the constraint."),
    minDomains: z.int().min(1).optional().describe("Minimum number of domains; requires DoNotSchedule."),
    nodeAffinityPolicy: z
      .enum(["Honor", "Ignore"])
      .optional()
      .describe("Policy for the node affinity and node selector of the pods."),
    nodeTaintsPolicy: z.enum(["Honor", "Ignore"]).optional().describe("Policy for node taints."),
  })
  .describe("A topology spread constraint; the chart adds the label selector.");

const amounts = (description: string) =>
  z
    .strictObject({
      cpu: quantity("CPU, such as 100m."),
      memory: quantity("Memory, such as 128Mi."),
      "ephemeral-storage": quantity("Local disk space, such as 64Mi."),
    })
    .optional()
    .describe(description);

/** The values that both processes have. */
function workload(options: { readonly replicas: string; readonly memoryLimit: string }) {
  return {
    replicas: integer(1, 50, 2, options.replicas),
    resources: z
      .strictObject({
        requests: amounts("Resource requests."),
        limits: amounts("Resource limits."),
      })
      .default({
        requests: { cpu: "100m", memory: "128Mi" },
        limits: { memory: options.memoryLimit },
      })
      .describe(
        "Resource requirements of the container. There is no ephemeral-storage limit by default: the only data on disk are container logs, which the node rotates, and a limit could evict pods because of them.",
      ),
    podDisruptionBudget: group("PodDisruptionBudget of the pods.", {
      enabled: on("Create a PodDisruptionBudget that allows one eviction at a time."),
    }),
    priorityClassName: text("PriorityClass of the pods; empty for the default of the cluster."),
    nodeSelector: texts("Node selector of the pods."),
    tolerations: z.array(toleration).default([]).describe("Tolerations of the pods."),
    affinity: z
      .strictObject({
        nodeAffinity: kubernetes("As in `spec.affinity` of a pod.").optional(),
        podAffinity: kubernetes("As in `spec.affinity` of a pod.").optional(),
        podAntiAffinity: kubernetes("As in `spec.affinity` of a pod.").optional(),
      })
      .default({})
      .describe("Affinity of the pods, as in `spec.affinity` of a pod."),
    topologySpreadConstraints: z
      .array(spread)
      .default([
        { topologyKey: "topology.kubernetes.io/zone", maxSkew: 1, whenUnsatisfiable: "ScheduleAnyway" },
        { topologyKey: "kubernetes.io/hostname", maxSkew: 1, whenUnsatisfiable: "ScheduleAnyway" },
      ])
      .describe("Topology spread constraints of the pods."),
    podLabels: texts("Additional labels of the pods."),
    podAnnotations: texts("Additional annotations of the pods."),
  };
}

const peers = (standard: Record<string, unknown>[], description: string) =>
  z.array(z.looseObject({})).default(standard).describe(description);

const api = group("The process that serves HTTP requests.", {
  ...workload({ replicas: "Number of pods; ignored if `api.autoscaling` is enabled.", memoryLimit: "256Mi" }),
  config: group("Configuration of the process.", chartSchema(apiSettings)),
  tls: group("TLS of the API, which protects API keys in transit.", {
    enabled: on(
      "Serve HTTPS. Disable it only if TLS is terminated in front of the pods and you trust the network between.",
    ),
    secretName: text(
      "Secret with `tls.crt` and `tls.key`; the API serves a changed certificate within seconds, without a restart. With `certificate`, cert-manager writes to this Secret; its default name is derived from the release.",
    ),
    certificate: group("A cert-manager Certificate.", {
      enabled: off("Create a Certificate for the DNS names of the Service; requires cert-manager."),
      issuerRef: group("Issuer of the certificate.", {
        name: text("Name of the Issuer or ClusterIssuer."),
        kind: z
          .string()
          .default("Issuer")
          .describe("Issuer, ClusterIssuer, or the kind of an external issuer."),
        group: z.string().default("cert-manager.io").describe("API group of the issuer."),
      }),
      dnsNames: z.array(z.string()).default([]).describe("Additional DNS names of the certificate."),
      duration: duration("2160h", "Validity of the certificate."),
      renewBefore: duration("720h", "Time before expiry at which the certificate is renewed."),
    }),
  }),
  service: group("The Service of the API.", {
    type: z
      .enum(["ClusterIP", "NodePort", "LoadBalancer"])
      .default("ClusterIP")
      .describe("Type of the Service."),
    port: integer(0, 65_535, 0, "Port of the Service; 0 for 443 with TLS or 80 without."),
    annotations: texts("Annotations of the Service."),
  }),
  ingress: group("An Ingress for the API.", {
    enabled: off("Create an Ingress."),
    className: text("IngressClass; empty for the default of the cluster."),
    annotations: texts(
      "Annotations of the Ingress. With `api.tls`, add the annotation that makes your ingress controller use HTTPS to the Service.",
    ),
    host: text("Host name of the API."),
    tlsSecretName: text(
      "Secret with the certificate for the host name; empty if the ingress controller provides one.",
    ),
  }),
  httpRoute: group("A Gateway API HTTPRoute for the API.", {
    enabled: off(
      "Create an HTTPRoute; requires the Gateway API CRDs. With `api.tls`, add a BackendTLSPolicy.",
    ),
    annotations: texts("Annotations of the HTTPRoute."),
    hostnames: z
      .array(z.string())
      .default([])
      .describe("Host names of the API; all host names of the Gateway if empty."),
    parentRefs: z
      .array(
        z
          .strictObject({
            name: z.string().describe("Name of the Gateway."),
            namespace: z
              .string()
              .optional()
              .describe("Namespace of the Gateway; the namespace of the release if omitted."),
            sectionName: z.string().optional().describe("Listener of the Gateway; all listeners if omitted."),
            port: z.int().optional().describe("Port of the listener; all ports if omitted."),
          })
          .describe("A Gateway."),
      )
      .default([])
      .describe("Gateways that the HTTPRoute attaches to."),
  }),
  autoscaling: group("A HorizontalPodAutoscaler for the API.", {
    enabled: off(
      "Create a HorizontalPodAutoscaler; requires `api.resources.requests.cpu` and the resource metrics API.",
    ),
    minReplicas: integer(1, 50, 2, "Minimum number of pods."),
    maxReplicas: integer(1, 50, 6, "Maximum number of pods."),
    targetCpuUtilization: integer(
      1,
      1000,
      70,
      "Target CPU utilization, as a percentage of the CPU request. A pod uses one core at most.",
    ),
  }),
});

const controller = group("The process that resizes pipes.", {
  ...workload({
    replicas: "Number of pods; one is the leader, the others are on standby.",
    memoryLimit: "512Mi",
  }),
  config: group("Configuration of the process.", chartSchema(controllerSettings)),
});

export const chartValues = z.strictObject({
  global: z
    .looseObject({})
    .optional()
    .describe("Values that a parent chart sets for all subcharts. Not used."),
  nameOverride: text("Replaces the chart name in the names of objects."),
  fullnameOverride: text("Replaces the release name and chart name in the names of objects."),
  commonLabels: texts("Additional labels of all objects."),
  image: group("The image of both processes.", {
    repository: z
      .string()
      .min(1)
      .default("pipe-scaling-operator")
      .describe("Registry and name of the image."),
    tag: text("Tag of the image; empty for the appVersion of the chart."),
    digest: z
      .string()
      .regex(/^(sha256:[0-9a-f]{64})?$/)
      .default("")
      .describe("Digest of the image, which the node verifies; takes precedence over the tag."),
    pullPolicy: z
      .enum(["Always", "IfNotPresent", "Never"])
      .default("IfNotPresent")
      .describe("Pull policy of the image."),
  }),
  imagePullSecrets: z
    .array(z.strictObject({ name: z.string().describe("Name of the Secret.") }).describe("A Secret."))
    .default([])
    .describe("Secrets with registry credentials, in the namespace of the release."),
  pipes: group("Namespaces of pipes. Exactly one of the two values is required.", {
    namespaces: z
      .array(inChart(namespaceName))
      .default([])
      .meta({ uniqueItems: true })
      .describe(
        "Namespaces where pipes run, which must exist. Permissions are Roles in these namespaces, except for listing nodes (`rbac.nodes`).",
      ),
    allNamespaces: off("Allow pipes in every namespace. Permissions are ClusterRoles."),
  }),
  records: group("The namespace of the records: organizations, services, members and API keys.", {
    namespace: inChart(namespaceName)
      .default("pipe-scaling-records")
      .describe(
        "Name of the namespace. Store no other Secrets in it, because the service account of the API can read all of them. It must not be the namespace of the release, which has the Secrets of Helm.",
      ),
    createNamespace: on("Create the namespace. It is kept when the release is uninstalled."),
  }),
  tiers: z
    .record(z.string().min(1), tier)
    .default(builtInTiers)
    .describe(
      "Tiers of organizations, by name. Your tiers are merged into the defaults; `null` removes a tier. A change restarts both processes.",
    ),
  api,
  controller,
  listenAddress: z
    .string()
    .min(1)
    .default("0.0.0.0")
    .describe("Listen address of both processes; `::` if pods have IPv6 addresses."),
  securityContext: group(
    "User and groups of the processes. The other settings that Pod Security level `restricted` requires are fixed.",
    {
      runAsUser: z
        .int()
        .min(1)
        .nullable()
        .default(65_532)
        .describe("User ID; `null` if the cluster assigns one, as OpenShift does."),
      runAsGroup: z
        .int()
        .min(1)
        .nullable()
        .default(65_532)
        .describe("Group ID; `null` if the cluster assigns one."),
      fsGroup: z
        .int()
        .min(1)
        .nullable()
        .default(65_532)
        .describe("Group ID of mounted files; `null` if the cluster assigns one."),
    },
  ),
  rbac: group("Permissions of the two service accounts and of users.", {
    create: on("Create Roles, ClusterRoles and their bindings."),
    nodes: on(
      "Allow the controller to list nodes, so that it detects a size that fits no node before it stops a pipe. Disable it if no service account may read nodes.",
    ),
    inPlaceResize: on(
      "Allow the controller to resize running pods of pipes in place, which `controller.config.resizeStrategy` and `spec.strategy` of a PipeScaling request: patch pods/resize, and list, watch, patch and delete ReplicaSets. `admissionPolicies` restricts these permissions to the size of pipes. On clusters older than Kubernetes 1.35, pipes get rollouts. Disable it only together with the strategy `Rollout`.",
    ),
    aggregate: on("Add permissions for PipeScalings to the cluster roles `view`, `edit` and `admin`."),
  }),
  admissionPolicies: group("Restrictions that RBAC cannot express: by field and by name.", {
    create: on(
      "Create ValidatingAdmissionPolicies that restrict the controller to the sizes of pipes and the API to its own records. Without them, permission to patch Deployments is permission to run anything.",
    ),
  }),
  crds: group("The CRD of PipeScaling.", {
    enabled: on(
      "Install and upgrade the CRD with the release. Disable it for a second release in the same cluster, or if you manage the CRD separately.",
    ),
    keep: on("Keep the CRD when the release is uninstalled. Otherwise all PipeScalings are deleted with it."),
  }),
  networkPolicy: group("Ingress and egress of the processes.", {
    enabled: on("Create NetworkPolicies."),
    apiFrom: peers([], "Peers that may call the API, as in `ingress.from` of a NetworkPolicy; all if empty."),
    metricsFrom: peers(
      [{ namespaceSelector: {} }],
      "Peers that may read metrics, as in `ingress.from` of a NetworkPolicy; by default all pods of the cluster. Probes of the kubelet are always allowed.",
    ),
    apiServer: group(
      "Endpoints of the API server behind its Service: the only destination of the processes.",
      {
        ports: z
          .array(z.int().min(1).max(65_535))
          .min(1)
          .default([443, 6443])
          .describe("Ports of the API server, as listed by `kubectl get endpointslices -n default`."),
        cidrs: z
          .array(z.string())
          .default([])
          .describe("Addresses of the API server, as CIDRs; all addresses if empty."),
      },
    ),
  }),
  tracing: group("OpenTelemetry traces of rescales.", {
    otlpEndpoint: z
      .string()
      .regex(/^(https?:\/\/[^\s?#@/:][^\s?#@]*)?$/)
      .default("")
      .describe(
        "URL of a collector that accepts OTLP over HTTP, such as `http://otel-collector.observability:4318`; empty to disable tracing.",
      ),
    headersSecretName: text(
      "Secret in the namespace of the release whose key `headers` has the headers that the collector requires, as comma-separated `name=value` pairs; empty for no headers.",
    ),
    to: peers(
      [],
      "Peers of the collector, as in `egress.to` of a NetworkPolicy; all if empty. The policy allows the port of `otlpEndpoint`, so the pods of the collector must listen on the same port.",
    ),
  }),
  monitoring: group("Objects for the Prometheus operator and Grafana.", {
    serviceMonitor: group("A ServiceMonitor.", {
      enabled: off(
        "Create a ServiceMonitor and a Service for the operations port; requires the Prometheus operator.",
      ),
      interval: duration("30s", "Scrape interval."),
      labels: texts("Labels that your Prometheus selects."),
    }),
    prometheusRule: group("A PrometheusRule with the alerts.", {
      enabled: off(
        "Create a PrometheusRule; requires the Prometheus operator and metrics scraped through the ServiceMonitor.",
      ),
      labels: texts("Labels that your Prometheus selects."),
      runbookUrl: text(
        "Base URL of the runbooks (docs/runbooks); the name of the alert and `.md` are appended.",
      ),
    }),
    dashboard: group("A ConfigMap with the Grafana dashboard.", {
      enabled: off("Create a ConfigMap for the Grafana sidecar."),
      labels: z
        .record(z.string(), z.string())
        .default({ grafana_dashboard: "1" })
        .describe("Labels that the sidecar selects."),
      annotations: texts("Annotations, such as the folder for the sidecar."),
    }),
  }),
});
