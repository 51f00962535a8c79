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
 * The values of the chart: their names, types, bounds, defaults and words, said once. What is generated from
 * it (generate.ts): values.schema.json, values.yaml and the table in the chart's README. What two values must
 * be to each other is in templates/_validate.tpl, where it can be said in a sentence.
 */

/** Values that belong together. */
function group<S extends z.core.$ZodLooseShape>(description: string, shape: S) {
  return z.strictObject(shape).describe(description).optional();
}

/** A key of any name with a text, such as labels have. */
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

/** What Kubernetes knows by itself and checks on its own. */
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
  defaultCpuMillicores: millicores.describe("CPU of each replica of a service that has asked for no size."),
  maximumCpuMillicores: millicores.describe("CPU that no replica gets more of, whatever is asked for."),
});

const builtInTiers = Object.fromEntries(
  [...BUILT_IN_TIERS.values()].map(({ name, defaultSize, maximumSize }) => [
    name,
    { defaultCpuMillicores: defaultSize.cpuMillicores, maximumCpuMillicores: maximumSize.cpuMillicores },
  ]),
);

const toleration = z
  .strictObject({
    key: z.string().optional().describe("Key of the taint; without it all."),
    operator: z.enum(["Exists", "Equal"]).optional().describe("How the value is compared."),
    value: z.string().optional().describe("Value of the taint."),
    effect: z
      .enum(["NoSchedule", "PreferNoSchedule", "NoExecute"])
      .optional()
      .describe("Effect of the taint; without it all."),
    tolerationSeconds: z.int().optional().describe("For how long NoExecute is borne."),
  })
  .describe("A taint of nodes that the pods bear.");

const spread = z
  .strictObject({
    topologyKey: z.string().describe("Label of nodes whose values are the places to spread over."),
    maxSkew: z.int().min(1).describe("How many pods more one place may have than another."),
    whenUnsatisfiable: z
      .enum(["ScheduleAnyway", "DoNotSchedule"])
      .describe("What to do when that cannot be kept."),
    minDomains: z.int().min(1).optional().describe("How many places there must be; goes with DoNotSchedule."),
    nodeAffinityPolicy: z
      .enum(["Honor", "Ignore"])
      .optional()
      .describe("Whether nodes that the pods do not want count."),
    nodeTaintsPolicy: z.enum(["Honor", "Ignore"]).optional().describe("Whether nodes with taints count."),
  })
  .describe("A rule of spreading; which pods it is about is added by the chart.");

const amounts = (description: string) =>
  z
    .strictObject({
      cpu: quantity("CPU, such as 100m."),
      memory: quantity("Memory, such as 128Mi."),
      "ephemeral-storage": quantity("Room on the node's disk, such as 64Mi."),
    })
    .optional()
    .describe(description);

/** What both processes have. */
function workload(options: { readonly replicas: string; readonly memoryLimit: string }) {
  return {
    replicas: integer(1, 50, 2, options.replicas),
    resources: z
      .strictObject({
        requests: amounts("What the scheduler sets aside for a pod."),
        limits: amounts("What a pod cannot have more of."),
      })
      .default({
        requests: { cpu: "100m", memory: "128Mi" },
        limits: { memory: options.memoryLimit },
      })
      .describe(
        "CPU and memory of the container. Nothing is written to disk but logs, which the node rotates as it sees fit: a limit of disk would evict pods for it.",
      ),
    podDisruptionBudget: group("Whether nodes are drained one pod at a time.", {
      enabled: on("Make a PodDisruptionBudget: of the pods at most one is evicted at a time."),
    }),
    priorityClassName: text("PriorityClass of the pods; empty for the cluster's default."),
    nodeSelector: texts("Labels that nodes must have."),
    tolerations: z.array(toleration).default([]).describe("Taints of nodes that the pods bear."),
    affinity: z
      .strictObject({
        nodeAffinity: kubernetes("As in a pod's `spec.affinity`.").optional(),
        podAffinity: kubernetes("As in a pod's `spec.affinity`.").optional(),
        podAntiAffinity: kubernetes("As in a pod's `spec.affinity`.").optional(),
      })
      .default({})
      .describe("Which nodes and neighbours the pods like, as in a pod's `spec.affinity`."),
    topologySpreadConstraints: z
      .array(spread)
      .default([
        { topologyKey: "topology.kubernetes.io/zone", maxSkew: 1, whenUnsatisfiable: "ScheduleAnyway" },
        { topologyKey: "kubernetes.io/hostname", maxSkew: 1, whenUnsatisfiable: "ScheduleAnyway" },
      ])
      .describe("How the pods are spread over zones and nodes."),
    podLabels: texts("More labels of the pods."),
    podAnnotations: texts("More annotations of the pods."),
  };
}

const peers = (standard: Record<string, unknown>[], description: string) =>
  z.array(z.looseObject({})).default(standard).describe(description);

const api = group("The process that answers HTTP requests.", {
  ...workload({ replicas: "How many pods; `api.autoscaling` decides where it is on.", memoryLimit: "256Mi" }),
  config: group("Settings of the process.", chartSchema(apiSettings)),
  tls: group("How the API's keys are kept from being read on the way.", {
    enabled: on("Serve HTTPS. Off only where TLS ends in front of the pods, and what is between is trusted."),
    secretName: text(
      "Secret with `tls.crt` and `tls.key`; a change is served within seconds, without a restart. With `certificate` the one that it is written to, by default named after the release.",
    ),
    certificate: group("A Certificate of cert-manager.", {
      enabled: off("Make a Certificate for the Service's names; needs cert-manager."),
      issuerRef: group("Who issues it.", {
        name: text("Name of the Issuer or ClusterIssuer."),
        kind: z
          .string()
          .default("Issuer")
          .describe("Issuer, ClusterIssuer, or the kind of an external issuer."),
        group: z.string().default("cert-manager.io").describe("API group of that kind."),
      }),
      dnsNames: z.array(z.string()).default([]).describe("More names that it is to be valid for."),
      duration: duration("2160h", "How long it is valid."),
      renewBefore: duration("720h", "How long before its end it is renewed."),
    }),
  }),
  service: group("The Service of the API.", {
    type: z
      .enum(["ClusterIP", "NodePort", "LoadBalancer"])
      .default("ClusterIP")
      .describe("Type of the Service."),
    port: integer(0, 65_535, 0, "Port of the Service; 0 for 443 with TLS and 80 without."),
    annotations: texts("Annotations of the Service."),
  }),
  ingress: group("An Ingress for the API.", {
    enabled: off("Make an Ingress."),
    className: text("IngressClass; empty for the cluster's default."),
    annotations: texts(
      "Annotations of the Ingress. With `api.tls` on, the one that tells your controller to speak HTTPS to the Service.",
    ),
    host: text("Name by which clients reach the API."),
    tlsSecretName: text("Secret with the certificate for that name; empty if the controller has its own."),
  }),
  httpRoute: group("An HTTPRoute of the Gateway API for the API.", {
    enabled: off(
      "Make an HTTPRoute; needs the Gateway API's resources. With `api.tls` on, add a BackendTLSPolicy.",
    ),
    annotations: texts("Annotations of the HTTPRoute."),
    hostnames: z
      .array(z.string())
      .default([])
      .describe("Names by which clients reach the API; without any those of the Gateway."),
    parentRefs: z
      .array(
        z
          .strictObject({
            name: z.string().describe("Name of the Gateway."),
            namespace: z.string().optional().describe("Its namespace; without it the release's."),
            sectionName: z.string().optional().describe("Its listener; without it all."),
            port: z.int().optional().describe("Port of its listener; without it all."),
          })
          .describe("A Gateway."),
      )
      .default([])
      .describe("Gateways that it is attached to."),
  }),
  autoscaling: group("A HorizontalPodAutoscaler for the API.", {
    enabled: off("Make a HorizontalPodAutoscaler; needs `api.resources.requests.cpu` and the metrics API."),
    minReplicas: integer(1, 50, 2, "How many pods there are at the least."),
    maxReplicas: integer(1, 50, 6, "How many pods there are at the most."),
    targetCpuUtilization: integer(
      1,
      1000,
      70,
      "Percentage of the requested CPU that is aimed at. A pod uses one core at the most.",
    ),
  }),
});

const controller = group("The process that sizes the pipes.", {
  ...workload({
    replicas: "How many pods; one of them is at work, the others wait to take over.",
    memoryLimit: "512Mi",
  }),
  config: group("Settings of the process.", chartSchema(controllerSettings)),
});

export const chartValues = z.strictObject({
  global: z
    .looseObject({})
    .optional()
    .describe("What a chart above sets for all that are below it. Not used."),
  nameOverride: text("In place of the chart's name in the names of objects."),
  fullnameOverride: text("In place of release and chart in the names of objects."),
  commonLabels: texts("More labels of all objects."),
  image: group("The image of both processes.", {
    repository: z
      .string()
      .min(1)
      .default("pipe-scaling-operator")
      .describe("Registry and name of the image."),
    tag: text("Tag; empty for the chart's appVersion."),
    digest: z
      .string()
      .regex(/^(sha256:[0-9a-f]{64})?$/)
      .default("")
      .describe("Digest, which the node then checks the image by; it wins over the tag."),
    pullPolicy: z
      .enum(["Always", "IfNotPresent", "Never"])
      .default("IfNotPresent")
      .describe("When the node asks the registry."),
  }),
  imagePullSecrets: z
    .array(z.strictObject({ name: z.string().describe("Name of the Secret.") }).describe("A Secret."))
    .default([])
    .describe("Secrets with credentials for the registry, in the release's namespace."),
  pipes: group("Where the pipes run. One of the two must be given.", {
    namespaces: z
      .array(inChart(namespaceName))
      .default([])
      .meta({ uniqueItems: true })
      .describe(
        "Namespaces where pipes run. They must exist; the permissions are Roles in just these, except for the list of nodes (`rbac.nodes`).",
      ),
    allNamespaces: off("Pipes may run in any namespace; the permissions are ClusterRoles."),
  }),
  records: group("The namespace of organizations, services, members and API keys.", {
    namespace: inChart(namespaceName)
      .default("pipe-scaling-records")
      .describe(
        "Its name. No other Secrets may be in it: the API's account can read all of them. Not the release's own, where Helm's are.",
      ),
    createNamespace: on("Make the namespace. It is kept when the release is uninstalled."),
  }),
  tiers: z
    .record(z.string().min(1), tier)
    .default(builtInTiers)
    .describe(
      "Tiers of organizations, by name. What is given here is merged into these; `null` removes one. A change restarts both processes.",
    ),
  api,
  controller,
  listenAddress: z
    .string()
    .min(1)
    .default("0.0.0.0")
    .describe("Address that both processes listen on in their pods; `::` where pods have IPv6."),
  securityContext: group(
    "Who the processes are on the node. The rest of the Pod Security level `restricted` is fixed.",
    {
      runAsUser: z
        .int()
        .min(1)
        .nullable()
        .default(65_532)
        .describe("User; `null` where the cluster assigns one, as OpenShift does."),
      runAsGroup: z.int().min(1).nullable().default(65_532).describe("Group; `null` likewise."),
      fsGroup: z.int().min(1).nullable().default(65_532).describe("Group of mounted files; `null` likewise."),
    },
  ),
  rbac: group("Permissions of the two accounts, and of people.", {
    create: on("Make Roles, ClusterRoles and their bindings."),
    nodes: on(
      "Let the controller list the cluster's nodes, so that a size that fits none of them is known before a pipe is stopped for it. Off where no account may read nodes.",
    ),
    aggregate: on("Add the permissions to PipeScalings to the cluster's roles view, edit and admin."),
  }),
  admissionPolicies: group("What RBAC cannot say: which fields, and which names.", {
    create: on(
      "Make ValidatingAdmissionPolicies that hold the controller to the sizes of pipes, and the API to its own records. Without them the permission to patch Deployments is the permission to run anything.",
    ),
  }),
  crds: group("The CRD of PipeScaling.", {
    enabled: on(
      "Install and upgrade it with the release. Off for a second release in the same cluster, or where it is managed apart.",
    ),
    keep: on("Keep it when the release is uninstalled; without it all PipeScalings go too."),
  }),
  networkPolicy: group("Who may talk to the processes, and whom they may talk to.", {
    enabled: on("Make NetworkPolicies."),
    apiFrom: peers(
      [],
      "Who may call the API, as in `ingress.from` of a NetworkPolicy; without any everybody.",
    ),
    metricsFrom: peers(
      [{ namespaceSelector: {} }],
      "Who may read metrics, as in `ingress.from`; by default all pods of the cluster. Kubelets always can probe.",
    ),
    apiServer: group(
      "The one address that the processes call: the cluster's API server, as it is behind its Service.",
      {
        ports: z
          .array(z.int().min(1).max(65_535))
          .min(1)
          .default([443, 6443])
          .describe("Its ports: `kubectl get endpointslices -n default` tells them."),
        cidrs: z.array(z.string()).default([]).describe("Its addresses as CIDRs; without any all."),
      },
    ),
  }),
  tracing: group("Traces of rescales, by OpenTelemetry.", {
    otlpEndpoint: z
      .string()
      .regex(/^(https?:\/\/[^\s?#@/:][^\s?#@]*)?$/)
      .default("")
      .describe(
        "Collector that takes OTLP over HTTP, such as `http://otel-collector.observability:4318`; empty for no traces.",
      ),
    headersSecretName: text(
      "Secret in the release's namespace whose key `headers` has what the collector asks for, as `name=value` with commas between; empty for nothing.",
    ),
    to: peers(
      [],
      "Where the collector is, as in `egress.to` of a NetworkPolicy; without any everywhere. The port is the address's, which must be that of the collector's pods too.",
    ),
  }),
  monitoring: group("What the Prometheus operator and Grafana pick up.", {
    serviceMonitor: group("A ServiceMonitor.", {
      enabled: off(
        "Make a ServiceMonitor, with a Service of the operations port; needs the Prometheus operator.",
      ),
      interval: duration("30s", "How often the processes are scraped."),
      labels: texts("Labels by which your Prometheus selects it."),
    }),
    prometheusRule: group("A PrometheusRule with the alerts.", {
      enabled: off(
        "Make a PrometheusRule; needs the Prometheus operator, and metrics that came by the ServiceMonitor.",
      ),
      labels: texts("Labels by which your Prometheus selects it."),
      runbookUrl: text(
        "Where docs/runbooks of this project can be read; the name of the alert and `.md` are added to it.",
      ),
    }),
    dashboard: group("A ConfigMap with the dashboard.", {
      enabled: off("Make a ConfigMap for Grafana's sidecar."),
      labels: z
        .record(z.string(), z.string())
        .default({ grafana_dashboard: "1" })
        .describe("Labels by which the sidecar selects it."),
      annotations: texts("Annotations, such as the sidecar's folder."),
    }),
  }),
});
