import * as z from "zod";
import {
  CPU_MAXIMUM_MILLICORES,
  CPU_MINIMUM_MILLICORES,
  CPU_STEP_MILLICORES,
  DEFAULT_MAXIMUM_CORES,
} from "../../src/domain/size.ts";
import { BUILT_IN_TIERS } from "../../src/domain/tier.ts";
import { apiSettings } from "../../src/settings/api.ts";
import { chartSchema } from "../../src/settings/chart.ts";
import { controllerSettings } from "../../src/settings/controller.ts";
import {
  chartCidr,
  chartText,
  durationMs,
  inChart,
  listenAddress,
  namespaceName,
} from "../../src/settings/values.ts";

/*
 * The only declaration of the chart's values: names, types, bounds, defaults and descriptions. generate.ts derives
 * values.schema.json, files/text-rules.yaml, files/required-values.yaml, values.yaml and the table in the chart's
 * README from it. Rules of texts and
 * rules between two values are checked by templates (_texts.tpl, _validate.tpl), because a template can explain the
 * error in a sentence.
 */

/** Default memory limits of the containers. The benchmarks use them, too. */
export const MEMORY_LIMIT_MIB = { api: 256, controller: 512 };

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

/** A duration with bounds that Kubernetes or an operator checks later, with an error that Helm does not show. */
function duration(least: string, most: string, standard: string, description: string) {
  return inChart(durationMs(least, most)).default(standard).describe(description);
}

/** Empty, or a text with a rule. */
function optionalText(sentence: string, pattern: RegExp, description: string) {
  return chartText(sentence, [/^$/, pattern]).default("").describe(description);
}

/** An alert; its key is the name in the rule and of the runbook. */
function alert<S extends z.core.$ZodLooseShape>(about: string, thresholds: S) {
  return group(about, { enabled: on("Enable the alert."), ...thresholds });
}

/** The alert fires above this value, or for a remaining time below it. */
function threshold(standard: number, description: string) {
  return z.number().nonnegative().default(standard).describe(description);
}

function percentage(standard: number, description: string) {
  return z.number().nonnegative().max(100).default(standard).describe(description);
}

/** A part of the Kubernetes API, which the API server validates. */
function kubernetes(description: string, standard: Record<string, unknown> = {}) {
  return z.looseObject({}).default(standard).describe(description);
}

/** A list of parts of the Kubernetes API. */
function objects(description: string, standard: Record<string, unknown>[] = []) {
  return z.array(z.looseObject({})).default(standard).describe(description);
}

const quantity = (description: string) =>
  z
    .union([
      chartText("it must be a quantity, such as 100m or 128Mi", [
        /^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$/,
      ]),
      z.number().nonnegative(),
    ])
    .optional()
    .describe(description);

/** A number of pods or a percentage of them. */
const pods = (description: string) =>
  z
    .union([
      chartText("it must be a number of pods, or a percentage such as 50%", [/^([0-9]{1,2}%|100%)?$/]),
      z.int().nonnegative(),
    ])
    .default("")
    .describe(description);

/** Parts of a probe, with the defaults of the chart. */
function probe(description: string, periodSeconds: number) {
  return group(description, {
    periodSeconds: integer(1, 3600, periodSeconds, "Time between two probes, in seconds."),
    timeoutSeconds: integer(1, 3600, 5, "Time after which a probe fails, in seconds."),
    failureThreshold: integer(1, 1000, 3, "Number of failures in a row after which Kubernetes acts."),
  });
}

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
    operator: z
      .enum(["Exists", "Equal", "Gt", "Lt"])
      .optional()
      .describe("Operator that compares the value."),
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
    matchLabelKeys: z
      .array(z.string())
      .optional()
      .describe(
        "Pod labels that are added to the selector with their values; `pod-template-hash` if omitted, so that each version is spread separately.",
      ),
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

function pullSecrets(description: string) {
  return z
    .array(z.strictObject({ name: z.string().describe("Name of the Secret.") }).describe("A Secret."))
    .default([])
    .describe(description);
}

/** The values that both processes have. */
function workload(options: { readonly replicaCount: string; readonly memoryLimitMib: number }) {
  return {
    replicaCount: integer(0, 50, 2, options.replicaCount),
    livenessProbe: probe("Liveness probe: the kubelet restarts a container that fails it.", 10),
    readinessProbe: probe("Readiness probe: a pod that fails it gets no requests.", 5),
    resources: z
      .strictObject({
        requests: amounts("Resource requests."),
        limits: amounts("Resource limits."),
      })
      .default({
        requests: { cpu: "100m", memory: "128Mi" },
        limits: { memory: `${options.memoryLimitMib}Mi` },
      })
      .describe(
        "Resource requirements of the container. There is no ephemeral-storage limit by default: the only data on disk are container logs, which the node rotates, and a limit could evict pods because of them.",
      ),
    podDisruptionBudget: group("PodDisruptionBudget of the pods.", {
      enabled: on("Create a PodDisruptionBudget. By default it allows one eviction at a time."),
      minAvailable: pods(
        "Pods that evictions must leave available, such as 1 or 50%. Kubernetes rounds a percentage up.",
      ),
      maxUnavailable: pods("Pods that may be unavailable because of evictions; 1 if both are empty."),
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
      .default([{ topologyKey: "kubernetes.io/hostname", maxSkew: 1, whenUnsatisfiable: "ScheduleAnyway" }])
      .describe(
        "Topology spread constraints of the pods. Add `topology.kubernetes.io/zone` only if all nodes have this label: the scheduler does not spread pods across nodes without it, not even by hostname.",
      ),
    strategy: kubernetes(
      "Update strategy, as in `spec.strategy` of a Deployment. By default, and for absent fields: `RollingUpdate` with 25% each.",
    ),
    revisionHistoryLimit: integer(0, 1000, 10, "Number of old ReplicaSets to keep for rollbacks."),
    deploymentAnnotations: texts("Annotations of the Deployment."),
    serviceAccount: group("ServiceAccount of the pods. The two processes must have different accounts.", {
      create: on("Create the ServiceAccount."),
      name: optionalText(
        "it must be the name of a ServiceAccount: lowercase letters, digits, hyphens and dots",
        /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/,
        "Name of the ServiceAccount; derived from the release if empty. Required without `create`.",
      ),
      annotations: texts("Annotations of the ServiceAccount, such as the role of a cloud provider."),
    }),
    extraArgs: z
      .array(z.string())
      .default([])
      .describe("Additional flags of the process. A flag takes precedence over `config`."),
    extraEnv: objects("Additional environment variables, as in `env` of a container."),
    extraContainers: objects(
      "Additional containers, as in `spec.containers` of a pod. The NetworkPolicy applies to them, too.",
    ),
    extraVolumes: objects("Additional volumes, as in `spec.volumes` of a pod."),
    extraVolumeMounts: objects("Additional volume mounts, as in `volumeMounts` of a container."),
    dnsPolicy: z
      .enum(["", "ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"])
      .default("")
      .describe("DNS policy of the pods; empty for the default of Kubernetes, `ClusterFirst`."),
    dnsConfig: kubernetes("DNS settings of the pods, as in `spec.dnsConfig` of a pod."),
    hostAliases: objects(
      "Additional entries of the hosts file of the pods, as in `spec.hostAliases` of a pod.",
    ),
    podLabels: texts("Additional labels of the pods."),
    podAnnotations: texts("Additional annotations of the pods."),
  };
}

/** The values that a ServiceMonitor and a PodMonitor have. */
function scraping() {
  return {
    interval: duration("1s", "24h", "30s", "Scrape interval."),
    scrapeTimeout: optionalText(
      "it must be empty, or a duration such as 10s",
      /^[0-9]{1,9}(ms|s|m|h)$/,
      "Scrape timeout, at most the interval; empty for the default of Prometheus.",
    ),
    relabelings: objects(
      "Relabelings of targets. The alerts need the labels `namespace`, `job`, `container` and `pod` unchanged.",
    ),
    metricRelabelings: objects("Relabelings of samples, for example to drop metrics."),
    labels: texts("Labels that your Prometheus selects."),
  };
}

const api = group("The process that serves HTTP requests.", {
  ...workload({
    replicaCount: "Number of pods; ignored if `api.autoscaling` is enabled.",
    memoryLimitMib: MEMORY_LIMIT_MIB.api,
  }),
  config: group("Configuration of the process.", chartSchema(apiSettings)),
  tls: group("TLS of the API, which protects API keys in transit.", {
    enabled: on(
      "Serve HTTPS. Disable it only if TLS is terminated in front of the pods and you trust the network between.",
    ),
    secretName: text(
      "Your Secret with `tls.crt` and `tls.key`; the API serves a changed certificate within about a minute, without a restart. If empty, the chart creates a Secret with a self-signed certificate on the first installation and keeps it on upgrades. With `certificate`, cert-manager writes to this Secret, by default `…-api-certificate`. The name `…-api-tls` is that of the self-signed certificate, which Helm deletes when it is not used.",
    ),
    dnsNames: z
      .array(z.string())
      .default([])
      .describe(
        "Additional DNS names of the certificate of cert-manager or the self-signed one. Both have the names of the Service, and the self-signed one also has `localhost`.",
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
      duration: duration("1h", "87600h", "2160h", "Validity of the certificate."),
      renewBefore: duration(
        "5m",
        "87600h",
        "720h",
        "Time before expiry at which the certificate is renewed; less than `duration`.",
      ),
    }),
  }),
  service: group("The Service of the API.", {
    type: z
      .enum(["ClusterIP", "NodePort", "LoadBalancer"])
      .default("ClusterIP")
      .describe("Type of the Service."),
    port: integer(0, 65_535, 0, "Port of the Service; 0 for 443 with TLS or 80 without."),
    ipFamilyPolicy: z
      .enum(["", "SingleStack", "PreferDualStack", "RequireDualStack"])
      .default("")
      .describe(
        "IP families of the Service; empty for the default of Kubernetes, `SingleStack`. IPv6 needs the `listenAddress` `::`.",
      ),
    ipFamilies: z
      .array(z.enum(["IPv4", "IPv6"]))
      .max(2)
      .default([])
      .meta({ uniqueItems: true })
      .describe("IP families of the Service, the primary one first; those of the cluster if empty."),
    annotations: texts("Annotations of the Service."),
    externalTrafficPolicy: z
      .enum(["", "Cluster", "Local"])
      .default("")
      .describe(
        "Routing of traffic from outside, for the types NodePort and LoadBalancer. `Local` preserves the addresses of clients, which access lists of keys and limits of failed logins need. Empty for the default of Kubernetes, `Cluster`.",
      ),
    loadBalancerClass: text(
      "Class of the load balancer, for the type LoadBalancer; empty for the default of the cluster.",
    ),
    loadBalancerSourceRanges: z
      .array(chartCidr)
      .default([])
      .describe("CIDRs that may reach the load balancer, for the type LoadBalancer; all if empty."),
  }),
  ingress: group("An Ingress for the API.", {
    enabled: off("Create an Ingress."),
    className: text("IngressClass; empty for the default of the cluster."),
    annotations: texts(
      "Annotations of the Ingress. With `api.tls`, add the annotation that makes your ingress controller use HTTPS to the Service.",
    ),
    hosts: z
      .array(
        z
          .strictObject({
            host: z.string().min(1).describe("Host name of the API."),
            paths: z
              .array(
                z
                  .strictObject({
                    path: z.string().describe("Path that is routed to the API."),
                    pathType: z
                      .enum(["Prefix", "Exact", "ImplementationSpecific"])
                      .describe("Type of the path."),
                  })
                  .describe("A path."),
              )
              .optional()
              .describe("Paths of the host; all paths if omitted."),
          })
          .describe("A host."),
      )
      .default([])
      .describe("Hosts of the API."),
    tls: z
      .array(
        z
          .strictObject({
            secretName: z
              .string()
              .optional()
              .describe("Secret with the certificate; omit it if the ingress controller provides one."),
            hosts: z.array(z.string()).optional().describe("Host names of the certificate."),
          })
          .describe("A certificate."),
      )
      .default([])
      .describe("Certificates of the hosts, as in `spec.tls` of an Ingress."),
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
      "Create a HorizontalPodAutoscaler; requires `api.resources.requests.cpu` and the resource metrics API. To disable it again with Helm 4, add `--force-conflicts`, because the autoscaler owns the number of pods.",
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
    replicaCount:
      "Number of pods; one is the leader, the others are on standby. With 0, no size is applied to pipes.",
    memoryLimitMib: MEMORY_LIMIT_MIB.controller,
  }),
  config: group("Configuration of the process.", chartSchema(controllerSettings)),
});

const alerts = group("The alerts, by name.", {
  PipeScalingApiDown: alert("No API process is ready.", {}),
  PipeScalingNoLeader: alert("No controller is the leader.", {}),
  PipeScalingApiErrors: alert("The API fails requests.", {
    threshold: percentage(5, "Percentage of failed requests above which the alert fires."),
    minimumPerMinute: threshold(
      12,
      "Failed requests per minute up to which the alert does not fire, so that a single client cannot cause it.",
    ),
  }),
  PipeScalingApiSlow: alert("The API responds slowly.", {
    threshold: threshold(1, "Response time (95th percentile) above which the alert fires, in seconds."),
    minimumPerMinute: threshold(12, "Requests per minute up to which the alert does not fire."),
  }),
  PipeScalingCertificateExpiry: alert("The TLS certificate of the API expires soon.", {
    threshold: threshold(
      14,
      "Remaining validity of the certificate below which the alert fires, in days; less than the time at which the certificate is renewed.",
    ),
  }),
  PipeScalingApiCacheStale: alert("A cache of the API is stale.", {
    threshold: threshold(
      150,
      "Age of a cache above which the alert fires, in seconds; less than `api.config.maxCacheAge`.",
    ),
  }),
  PipeScalingWatchStale: alert("A watch of the controller is silent.", {
    threshold: threshold(300, "Age of a watch above which the alert fires, in seconds."),
  }),
  PipeScalingNamespacesLeftOut: alert("The controller may not read namespaces of pipes.", {
    threshold: threshold(0, "Number of namespaces left out above which the alert fires."),
  }),
  PipeScalingClusterErrors: alert("Calls to the API server fail.", {
    threshold: percentage(10, "Percentage of failed calls above which the alert fires."),
  }),
  PipeScalingStalled: alert("Services are stalled.", {
    threshold: threshold(0, "Number of stalled services above which the alert fires."),
  }),
  PipeScalingPropagationSlow: alert("A rescale takes too long.", {
    threshold: threshold(3600, "Age of the oldest rescale above which the alert fires, in seconds."),
  }),
  PipeScalingInPlaceFallbacks: alert("Pipes restart instead of being resized in place.", {
    threshold: threshold(5, "Pipes per hour with a rollout instead, above which the alert fires."),
  }),
  PipeScalingReconcileErrors: alert("Reconciliations fail.", {
    threshold: percentage(10, "Percentage of failed reconciliations above which the alert fires."),
  }),
  PipeScalingQueueSlow: alert("Services wait in the work queue.", {
    threshold: threshold(
      60,
      "Wait in the work queue (90th percentile) above which the alert fires, in seconds.",
    ),
  }),
  PipeScalingMalformedRecords: alert("Records are malformed.", {
    threshold: threshold(0, "Number of malformed records above which the alert fires."),
  }),
  PipeScalingFailedLogins: alert("Many requests have invalid credentials.", {
    threshold: threshold(1, "Failed authentications per second above which the alert fires."),
  }),
});

export const chartValues = z.strictObject({
  enabled: z
    .boolean()
    .optional()
    .describe("Not used. A parent chart can name it as the `condition` of this dependency."),
  global: z
    .looseObject({
      imagePullSecrets: pullSecrets(
        "Secrets with registry credentials, in addition to `imagePullSecrets`. A parent chart can set them for all subcharts.",
      ),
    })
    .optional()
    .describe("Values that a parent chart sets for all subcharts."),
  nameOverride: text("Replaces the chart name in the names of objects."),
  fullnameOverride: text("Replaces the release name and chart name in the names of objects."),
  commonLabels: texts("Additional labels of all objects."),
  commonAnnotations: texts("Additional annotations of all objects, but not of pods."),
  image: group("The image of both processes.", {
    registry: text(
      "Registry of the image, such as `registry.example.com`; empty if `repository` includes it.",
    ),
    repository: text(
      "Repository of the image, such as `registry.example.com/platform/pipe-scaling-operator`, without a scheme, a tag or a digest. Required, except in the chart of a release.",
    ),
    tag: optionalText(
      "it must be a tag, such as 1.2.3; a digest belongs in image.digest",
      /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/,
      "Tag of the image; empty for the appVersion of the chart.",
    ),
    digest: optionalText(
      "it must be sha256: and 64 hexadecimal digits",
      /^sha256:[0-9a-f]{64}$/,
      "Digest of the image, which the node verifies; takes precedence over the tag.",
    ),
    pullPolicy: z
      .enum(["Always", "IfNotPresent", "Never"])
      .default("IfNotPresent")
      .describe("Pull policy of the image."),
  }),
  imagePullSecrets: pullSecrets("Secrets with registry credentials, in the namespace of the release."),
  pipes: group("Namespaces of pipes. Exactly one of the two values is required.", {
    namespaces: z
      .array(inChart(namespaceName))
      .default([])
      .meta({ uniqueItems: true })
      .describe(
        "Namespaces where pipes run, which must exist. Permissions are Roles in these namespaces and in that of the records, except for listing nodes (`rbac.nodes`) and for the authentication of metrics (`monitoring.authentication`).",
      ),
    allNamespaces: off(
      "Allow pipes in every namespace. Permissions are ClusterRoles, except for the records.",
    ),
  }),
  records: group("The namespace of the records: organizations, services, members and API keys.", {
    namespace: inChart(namespaceName)
      .default("pipe-scaling-records")
      .describe(
        "Name of the namespace. Store no other Secrets in it, because the service account of the API can read all of them. It must not be the namespace of the release, which has the Secrets of Helm.",
      ),
    createNamespace: on("Create the namespace. It is kept when the release is uninstalled."),
  }),
  sizes: group("Sizes that can be requested: whole cores, with 4 GiB for each core.", {
    maximumCores: integer(
      1,
      CPU_MAXIMUM_MILLICORES / 1000,
      DEFAULT_MAXIMUM_CORES,
      "Cores of the largest size that can be requested through the API. A tier can allow less; to allow more than 24 cores, raise the maximum of tiers, too. A smaller number resizes no pipe: services with a larger size keep it.",
    ),
  }),
  tiers: z
    .record(z.string().min(1), tier)
    .default(builtInTiers)
    .describe(
      "Tiers of organizations, by name. Your tiers are merged into the defaults; `null` removes a tier. A change restarts both processes.",
    ),
  api,
  controller,
  listenAddress: inChart(listenAddress)
    .default("0.0.0.0")
    .describe("Listen address of both processes; `::` if pods have IPv6 addresses."),
  podSecurityContext: kubernetes(
    "Security context of the pods, as in `spec.securityContext` of a pod. Set `runAsUser`, `runAsGroup` and `fsGroup` to `null` if the cluster assigns them, as OpenShift does.",
    {
      runAsNonRoot: true,
      runAsUser: 65_532,
      runAsGroup: 65_532,
      fsGroup: 65_532,
      seccompProfile: { type: "RuntimeDefault" },
    },
  ),
  securityContext: kubernetes(
    "Security context of the containers. The defaults of both contexts satisfy the Pod Security level `restricted`.",
    { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ["ALL"] } },
  ),
  rbac: group("Permissions of the two service accounts and of users.", {
    create: on(
      "Create the Roles, ClusterRoles and bindings of the two service accounts, and those for reading metrics. `aggregate` is independent of it.",
    ),
    nodes: on(
      "Allow the controller to list nodes, so that it detects a size that fits no node before it stops a pipe. Disable it if no service account may read nodes.",
    ),
    inPlaceResize: on(
      "Allow the controller to resize running pods of pipes in place, which `controller.config.resizeStrategy` and `spec.strategy` of a PipeScaling request: patch pods/resize, and list, patch and delete ReplicaSets. `admissionPolicies` restricts these permissions to the size of pipes. On clusters older than Kubernetes 1.34, pipes fall back to rollouts; use 1.35 or newer. Disable it only together with the strategy `Rollout`.",
    ),
    statefulSets: on(
      "Allow the controller to resize pipes that are StatefulSets: list, watch and patch StatefulSets, delete their pods that are not ready, and, with `inPlaceResize`, patch the label of pods with the revision of their StatefulSet. `admissionPolicies` restricts these permissions to pipes. Disable it if no pipe is a StatefulSet.",
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
    keep: on(
      "Keep the CRD when the release is uninstalled, or when `crds.enabled` becomes false. Otherwise all PipeScalings are deleted with it.",
    ),
  }),
  preflight: group("Checks of the cluster before an installation or an upgrade.", {
    enabled: on(
      "Check that namespaces and Secrets exist, that releases neither manage the same objects nor delete the PipeScalings of each other, and that `crds.enabled=false` does not delete the CRD. Disable it if you may not read namespaces, CRDs and Services of the cluster, or if another tool creates the Secrets later. Tools that render without a cluster, such as Argo CD, skip these checks.",
    ),
  }),
  networkPolicy: group("Ingress and egress of the processes.", {
    enabled: on("Create NetworkPolicies."),
    apiFrom: objects("Peers that may call the API, as in `ingress.from` of a NetworkPolicy; all if empty."),
    metricsFrom: objects(
      "Peers that may read metrics, as in `ingress.from` of a NetworkPolicy; by default all pods of the cluster. Probes of the kubelet are always allowed.",
      [{ namespaceSelector: {} }],
    ),
    apiServer: group(
      "Endpoints of the API server behind its Service: the only destination of the processes, except for the collector of `tracing` and DNS to resolve its name.",
      {
        ports: z
          .array(z.int().min(1).max(65_535))
          .min(1)
          .default([443, 6443, 8443, 16_443])
          .describe(
            "Ports of the API server, as listed by `kubectl get endpointslices -n default`. The default has those of most distributions, such as 8443 of minikube and 16443 of MicroK8s.",
          ),
        cidrs: z
          .array(chartCidr)
          .default([])
          .describe("Addresses of the API server, as CIDRs; all addresses if empty."),
      },
    ),
  }),
  tracing: group("OpenTelemetry traces of rescales.", {
    otlpEndpoint: optionalText(
      "it must be the URL of a collector, such as http://otel-collector.observability:4318",
      /^https?:\/\/[^\s?#@/:][^\s?#@]*$/,
      "URL of a collector that accepts OTLP over HTTP, such as `http://otel-collector.observability:4318`; empty to disable tracing.",
    ),
    headersSecretName: text(
      "Secret in the namespace of the release whose key `headers` has the headers that the collector requires, as comma-separated `name=value` pairs; empty for no headers.",
    ),
    to: objects(
      "Peers of the collector, as in `egress.to` of a NetworkPolicy; all if empty. The policy allows the port of `otlpEndpoint`, so the pods of the collector must listen on the same port.",
    ),
  }),
  extraObjects: z
    .array(z.union([z.string(), z.looseObject({})]))
    .default([])
    .describe(
      "Additional objects of the release, as YAML or as a string. Both may contain template expressions.",
    ),
  monitoring: group("Access to the metrics, and objects for the Prometheus operator and Grafana.", {
    authentication: group("Authentication of requests for the metrics.", {
      enabled: off(
        "Serve metrics only to bearer tokens whose user may get the non-resource URL `/metrics`, and create a ClusterRole with this permission. The ServiceMonitor or PodMonitor gets a token of its own. Both service accounts get permission to create TokenReviews and SubjectAccessReviews.",
      ),
    }),
    serviceMonitor: group("A ServiceMonitor.", {
      enabled: off(
        "Create a ServiceMonitor and a Service for the operations port; requires the Prometheus operator.",
      ),
      ...scraping(),
    }),
    podMonitor: group("A PodMonitor, as an alternative to the ServiceMonitor without a Service.", {
      enabled: off("Create a PodMonitor for the operations port; requires the Prometheus operator."),
      ...scraping(),
    }),
    prometheusRule: group("A PrometheusRule with the alerts.", {
      enabled: off(
        "Create a PrometheusRule; requires the Prometheus operator, and the ServiceMonitor, the PodMonitor or `job`.",
      ),
      job: text(
        "Label `job` of the metrics if a scrape configuration of your own collects them. It must also set the labels `namespace` and `container` to those of the pod, and `pod` to its name. Empty for the ServiceMonitor or the PodMonitor.",
      ),
      labels: texts("Labels that your Prometheus selects."),
      runbookUrl: text(
        "Base URL of the runbooks (docs/runbooks); the name of the alert and `.md` are appended.",
      ),
      alerts,
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
