import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { isDeepStrictEqual } from "node:util";
import { helm, tryHelm } from "@pipe-scaling/local-cluster/helm";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { stringify } from "yaml";
import * as z from "zod";
import { generated, requiredValues, type ValueSchema, valuesSchema } from "../../deploy/chart/generated.ts";
import { CHART } from "../../deploy/chart/path.ts";
import { NODE } from "../../deploy/image/node.ts";
import { plainManifests } from "../../deploy/manifests/plain-manifests.ts";
import { PERMISSIONS, REVIEW_PERMISSIONS } from "../../src/cli/doctor/permissions.ts";
import { apiSettings } from "../../src/settings/api.ts";
import { controllerSettings } from "../../src/settings/controller.ts";
import { declaredOptions } from "../../src/settings/option.ts";
import { writeKubeconfig } from "../support/fixtures/kubeconfig.ts";
import { limitedController, shippedAccount } from "../support/fixtures/shipped-account.ts";
import { entrypoint } from "./image.ts";
import { type Manifest, RELEASE, rendered, VALUE_SETS, valuesFile } from "./tools.ts";

const MINIMAL = ["--values", valuesFile("minimal")] as const;

describe("a generated file of the chart", () => {
  it.each([...generated()])("is what `npm run generate` writes: %s", (path, text) => {
    const message = `deploy/chart/${path} is out of date: run npm run generate`;
    expect(readFileSync(`${CHART}/../${path}`, "utf8"), message).toBe(text);
  });
});

describe("the plain manifests", () => {
  it("are what `npm run generate` writes", async () => {
    const manifests = readFileSync(new URL("../../deploy/manifests/install.yaml", import.meta.url), "utf8");
    const message = "deploy/manifests/install.yaml is out of date: run npm run generate";
    expect(manifests, message).toBe(await plainManifests());
  });
});

const clusterRole = z.object({
  kind: z.literal("ClusterRole"),
  rules: z.array(
    z.object({
      apiGroups: z.tuple([z.string()]),
      resources: z.tuple([z.string()]),
      verbs: z.array(z.string()),
    }),
  ),
});

function granted(objects: readonly object[]) {
  return objects
    .flatMap((object) => clusterRole.safeParse(object).data?.rules ?? [])
    .map(({ apiGroups: [group], resources: [resource], verbs }) => ({ group, resource, verbs }));
}

describe("monitoring.authentication.enabled", () => {
  it("adds exactly the permissions that doctor checks if the metrics are authenticated", async () => {
    const all = await rendered(...MINIMAL, "--set", "monitoring.authentication.enabled=true");
    const reviewer = all.filter(({ metadata }) => metadata.name.includes("-metrics-reviewer"));
    expect(granted(reviewer)).toEqual(
      REVIEW_PERMISSIONS.map(({ group, resource, verbs }) => ({ group, resource, verbs })),
    );
  });
});

describe.each([
  ["rbac.inPlaceResize", "rbac.inPlaceResize=false,controller.config.resizeStrategy=Rollout"],
  ["rbac.statefulSets", "rbac.statefulSets=false"],
])("%s", (value, without) => {
  it("adds exactly the permissions that doctor checks and calls optional", async () => {
    const before = granted(await limitedController("anywhere", without));
    const added = granted(shippedAccount("controller", "anywhere")).filter(
      (rule) => !before.some((each) => isDeepStrictEqual(each, rule)),
    );
    const checked = PERMISSIONS.controller
      .filter(({ optional }) => optional?.includes(value))
      .map(({ group, resource, verbs }) => ({ group, resource, verbs }));
    expect(added).toEqual(checked);
  });
});

describe("the schema of the chart values", () => {
  const fields = [...everyField(valuesSchema(), "values")];

  it("describes every field", () => {
    expect(
      fields.filter(([, { description = "" }]) => !/^[A-Z`].*\.$/s.test(description)).map(([path]) => path),
    ).toEqual([]);
  });

  it("rejects unknown keys in every object with declared keys, except for the values of parent charts", () => {
    const open = fields.filter(([, { properties, additionalProperties }]) => {
      return Object.keys(properties ?? {}).length > 0 && additionalProperties !== false;
    });
    expect(open.map(([path]) => path)).toEqual(["values.global"]);
  });
});

describe.each(VALUE_SETS)("the chart with the %s values", (set) => {
  it("passes helm lint", async () => {
    expect(await helm(["lint", "--strict", CHART, "--values", valuesFile(set)])).toMatch(
      /0 chart\(s\) failed/,
    );
  });

  it("labels every object with the release", async () => {
    const objects = await rendered("--values", valuesFile(set));
    const unlabeled = objects.filter(({ metadata: { labels } }) => {
      return labels?.["app.kubernetes.io/instance"] !== "release" || !labels["helm.sh/chart"];
    });
    expect(unlabeled).toEqual([]);
  });
});

describe("a blank value that is on by default, a map with entries, or a list that must not be empty", () => {
  const paths = [...requiredValues(valuesSchema())];
  const message = (path: string) =>
    `${path} is blank, and Helm removes the default of a blank value: set it, or remove it from your values.`;

  it("is rejected with its name, instead of turning off what it protects", async () => {
    expect(paths).toEqual(
      expect.arrayContaining([
        "admissionPolicies.create",
        "api.podDisruptionBudget.enabled",
        "api.resources",
        "api.tls.enabled",
        "controller.resources",
        "monitoring.dashboard.labels",
        "monitoring.prometheusRule.alerts.PipeScalingNoLeader.enabled",
        "networkPolicy.apiServer.ports",
        "networkPolicy.enabled",
        "podSecurityContext",
        "preflight.enabled",
        "rbac.statefulSets",
        "securityContext",
        "tiers",
      ]),
    );
    const blank = paths.flatMap((path) => ["--set", `${path}=null`]);
    const { code, stderr } = await tryHelm(["template", ...RELEASE, ...MINIMAL, ...blank]);
    expect(code).toBe(1);
    expect(paths.filter((path) => !stderr.includes(message(path)))).toEqual([]);
  });

  it("is rejected together with its section", async () => {
    const sections = [...new Set(paths.map((path) => path.replace(/\..*$/, "")))];
    const blank = sections.flatMap((path) => ["--set", `${path}=null`]);
    const { code, stderr } = await tryHelm(["template", ...RELEASE, ...MINIMAL, ...blank]);
    expect(code).toBe(1);
    expect(paths.filter((path) => !stderr.includes(message(path)))).toEqual([]);
  });
});

describe("a map with entries by default", () => {
  it("loses an entry that is null, which is how values remove it on purpose", async () => {
    const entries = ["api.resources.requests", "api.resources.limits"];
    const blank = entries.flatMap((path) => ["--set", `${path}=null`]);
    const template = "templates/api-deployment.yaml";
    const [deployment] = await rendered(...MINIMAL, ...blank, "--show-only", template);
    expect(JSON.stringify(deployment)).toContain('"resources":{}');
  });
});

describe("the chart accepts", () => {
  const toleration = (operator: string) => ({
    key: "example.com/slots",
    operator,
    value: "4",
    effect: "NoSchedule",
  });

  it.each([
    ["a name that is too long", { fullnameOverride: `${"a".repeat(51)}--b` }],
    ["a release name that nothing is named after", { nameOverride: "Orders", fullnameOverride: "orders" }],
    ["enabled, the condition of a dependency", { enabled: true }],
    ["a controller without pods", { controller: { replicaCount: 0 } }],
    [
      "an additional variable that it sets only with other values",
      { api: { extraEnv: [{ name: "OTEL_EXPORTER_OTLP_HEADERS", value: "a=b" }] } },
    ],
    [
      "a Certificate that is renewed before the alert about its expiry fires",
      {
        monitoring: {
          podMonitor: { enabled: true },
          prometheusRule: { enabled: true, alerts: { PipeScalingCertificateExpiry: { threshold: 0.3 } } },
        },
        api: {
          tls: {
            certificate: {
              enabled: true,
              issuerRef: { name: "x" },
              duration: "24h",
              renewBefore: "8h",
            },
          },
        },
      },
    ],
    [
      "an alert about stale caches that fires before the API rejects reads",
      {
        monitoring: {
          podMonitor: { enabled: true },
          prometheusRule: { enabled: true, alerts: { PipeScalingApiCacheStale: { threshold: 119 } } },
        },
        api: { config: { maxCacheAge: "2m" } },
      },
    ],
    ["tolerations that compare numbers", { api: { tolerations: [toleration("Gt"), toleration("Lt")] } }],
  ])("%s", async (_, values) => {
    const set = Object.entries(values).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
    expect(await rendered(...MINIMAL, ...set.flatMap((each) => ["--set-json", each]))).not.toEqual([]);
  });

  it("matchLabelKeys of a topology spread constraint, instead of its own", async () => {
    const spread = { topologyKey: "example.com/rack", maxSkew: 1, whenUnsatisfiable: "DoNotSchedule" };
    const constraints = JSON.stringify([spread, { ...spread, matchLabelKeys: ["version"] }]);
    const objects = await rendered(...MINIMAL, "--set-json", `api.topologySpreadConstraints=${constraints}`);
    expect(JSON.stringify(objects).match(/"matchLabelKeys":\[[^\]]*\]/g)).toEqual([
      '"matchLabelKeys":["pod-template-hash"]',
      '"matchLabelKeys":["version"]',
      '"matchLabelKeys":["pod-template-hash"]',
    ]);
  });
});

describe("the chart rejects with the field and the reason", () => {
  it.each([
    ["a key with a typo", ["controler.replicaCount=2"], /additional properties 'controler' not allowed/],
    [
      "a nested key with a typo",
      ["api.config.rateLimitt=2"],
      /'\/api\/config'.*additional properties 'rateLimitt' not allowed/,
    ],
    ["a wrong type", ["api.replicaCount=two"], /'\/api\/replicaCount'.*got string, want integer/],
    [
      "a number above the maximum",
      ["api.config.rateLimit=10001"],
      /'\/api\/config\/rateLimit'.*maximum: got 10,001, want 10,000/,
    ],
    [
      "a number in place of a duration",
      ["controller.config.rolloutTimeout=15"],
      /'\/controller\/config\/rolloutTimeout'/,
    ],
    [
      "a path alias for a segment that does not exist",
      ["api.config.pathAliases.scaling=pipesScaling"],
      /'\/api\/config\/pathAliases\/scaling'.*value must be one of 'organizations'/,
    ],
    [
      "a path alias that is a segment itself",
      ["api.config.pathAliases.keys=services"],
      /invalid propertyName 'keys'/,
    ],
    [
      "a duplicate namespace",
      ["pipes.namespaces={a,a}"],
      /'\/pipes\/namespaces'.*items at 0 and 1 are equal/,
    ],
    [
      "a tier between two steps",
      ["tiers.gold.defaultCpuMillicores=1500,tiers.gold.maximumCpuMillicores=2000"],
      /'\/tiers\/gold\/defaultCpuMillicores'.*1,?500/,
    ],
    [
      "a tier without a maximum",
      ["tiers.gold.defaultCpuMillicores=1000"],
      /'\/tiers\/gold'.*missing property 'maximumCpuMillicores'/,
    ],
    [
      "a tier whose default is above its maximum",
      ["tiers.gold.defaultCpuMillicores=4000,tiers.gold.maximumCpuMillicores=2000"],
      /tiers\.gold: defaultCpuMillicores \(4000\) is greater than maximumCpuMillicores \(2000\)/,
    ],
    ["a largest size that no platform can offer", ["sizes.maximumCores=129"], /'\/sizes\/maximumCores'.*128/],
    [
      "a tier whose default is above the largest size",
      ["sizes.maximumCores=1"],
      /tiers\.enterprise: defaultCpuMillicores \(2000\) is greater than sizes\.maximumCores \(1\) allows: lower it, or raise sizes\.maximumCores/,
    ],
    [
      "values without an image",
      ["image.repository="],
      /image\.repository is empty: set it to the repository of the image, such as registry\.example\.com/,
    ],
    [
      "values without a namespace of pipes",
      ["pipes.namespaces=null"],
      /pipes\.namespaces is empty: list the namespaces/,
    ],
    [
      "a list of namespaces together with all namespaces",
      ["pipes.allNamespaces=true"],
      /pipes\.namespaces and pipes\.allNamespaces are mutually exclusive/,
    ],
    [
      "records in the namespace of the release",
      ["records.namespace=pipe-scaling-system"],
      /records\.namespace is the namespace of the release \(pipe-scaling-system\)/,
    ],
    [
      "records in a namespace of pipes",
      ["records.namespace=acme-pipes"],
      /records\.namespace \(acme-pipes\) is one of pipes\.namespaces/,
    ],
    [
      "resizes in place without permission",
      ["rbac.inPlaceResize=false"],
      /controller\.config\.resizeStrategy is InPlaceOrRollout.*set rbac\.inPlaceResize to true, or controller\.config\.resizeStrategy to Rollout/,
    ],
    [
      "the strategy InPlace without permission",
      ["rbac.inPlaceResize=false,controller.config.resizeStrategy=InPlace"],
      /controller\.config\.resizeStrategy is InPlace, but rbac\.inPlaceResize is false/,
    ],
    [
      "a Certificate without an issuer",
      ["api.tls.certificate.enabled=true"],
      /api\.tls\.certificate\.issuerRef\.name is empty/,
    ],
    [
      "the Secret of the self-signed certificate as that of another certificate",
      ["api.tls.secretName=release-pipe-scaling-operator-api-tls"],
      /api\.tls\.secretName is release-pipe-scaling-operator-api-tls, .*Helm deletes one that the chart has created: store your certificate in a Secret of another name/,
    ],
    [
      "a Certificate with TLS disabled",
      ["api.tls.enabled=false,api.tls.certificate.enabled=true,api.tls.certificate.issuerRef.name=x"],
      /so the certificate would be unused/,
    ],
    [
      "a Certificate that is renewed before it is issued",
      [
        "api.tls.certificate.enabled=true,api.tls.certificate.issuerRef.name=x",
        "api.tls.certificate.renewBefore=2160h",
      ],
      /api\.tls\.certificate\.renewBefore \(2160h\) must be less than api\.tls\.certificate\.duration \(2160h\)/,
    ],
    [
      "an additional variable that a setting of the process sets",
      ["api.extraEnv[0].name=PIPE_SCALING_LOG_LEVEL,api.extraEnv[0].value=debug"],
      /api\.extraEnv contains PIPE_SCALING_LOG_LEVEL, which the chart sets: set api\.config\.logLevel instead\./,
    ],
    [
      "an additional variable that another value sets",
      ["controller.extraEnv[0].name=PIPE_SCALING_NAMESPACE,controller.extraEnv[0].value=records"],
      /controller\.extraEnv contains PIPE_SCALING_NAMESPACE, which the chart sets: set records\.namespace instead\./,
    ],
    [
      "an additional variable that the chart sets without a value",
      ["api.extraEnv[0].name=PIPE_SCALING_PORT,api.extraEnv[0].value=9"],
      /api\.extraEnv contains PIPE_SCALING_PORT, which the chart sets: remove it\./,
    ],
    [
      "a Certificate that is renewed after the alert about its expiry fires",
      [
        "monitoring.prometheusRule.enabled=true,monitoring.podMonitor.enabled=true",
        "api.tls.certificate.enabled=true,api.tls.certificate.issuerRef.name=x",
        "api.tls.certificate.duration=24h,api.tls.certificate.renewBefore=8h",
      ],
      /PipeScalingCertificateExpiry\.threshold \(14 days\) is not less than api\.tls\.certificate\.renewBefore \(8h\)/,
    ],
    [
      "an alert about stale caches that fires after the API rejects reads",
      [
        "monitoring.prometheusRule.enabled=true,monitoring.podMonitor.enabled=true",
        "api.config.maxCacheAge=2m",
      ],
      /PipeScalingApiCacheStale\.threshold \(150 s\) is not less than api\.config\.maxCacheAge \(2m\).*: lower the threshold, or raise api\.config\.maxCacheAge\./,
    ],
    [
      "an autoscaler without CPU requests",
      ["api.autoscaling.enabled=true,api.resources.requests.cpu=null"],
      /api\.autoscaling\.enabled requires api\.resources\.requests\.cpu/,
    ],
    [
      "an autoscaler with more minimum than maximum replicas",
      ["api.autoscaling.enabled=true,api.autoscaling.minReplicas=9"],
      /minReplicas \(9\) is greater than maxReplicas \(6\)/,
    ],
    [
      "a traffic policy of a Service for the cluster only",
      ["api.service.externalTrafficPolicy=Local"],
      /api\.service\.externalTrafficPolicy requires the type NodePort or LoadBalancer/,
    ],
    [
      "a load balancer class without a load balancer",
      ["api.service.type=NodePort,api.service.loadBalancerClass=example.com/internal"],
      /api\.service\.loadBalancerClass and .* require the type LoadBalancer/,
    ],
    [
      "two IP families of a Service with one address",
      ["api.service.ipFamilies={IPv6,IPv4},api.service.ipFamilyPolicy=SingleStack,listenAddress=::"],
      /api\.service\.ipFamilies lists two IP families, but api\.service\.ipFamilyPolicy is SingleStack/,
    ],
    [
      "an IPv6 address of the Service while the process listens on IPv4",
      ["api.service.ipFamilies={IPv6}"],
      /listenAddress \(0\.0\.0\.0\) is an IPv4 address.*set listenAddress to "::"/,
    ],
    [
      "both IP families of the Service while the process listens on IPv4",
      ["api.service.ipFamilyPolicy=RequireDualStack"],
      /listenAddress \(0\.0\.0\.0\) is an IPv4 address/,
    ],
    [
      "a ServiceAccount without a name that is not created",
      ["api.serviceAccount.create=false"],
      /api\.serviceAccount\.name is empty: set it to the name of an existing ServiceAccount/,
    ],
    [
      "one ServiceAccount for both processes",
      ["api.serviceAccount.name=scaling,controller.serviceAccount.name=scaling"],
      /api\.serviceAccount\.name and controller\.serviceAccount\.name are the same/,
    ],
    [
      "two monitors of the same pods",
      ["monitoring.serviceMonitor.enabled=true,monitoring.podMonitor.enabled=true"],
      /monitoring\.serviceMonitor and monitoring\.podMonitor are both enabled/,
    ],
    [
      "a scrape timeout that is longer than the interval",
      ["monitoring.podMonitor.enabled=true,monitoring.podMonitor.scrapeTimeout=1m"],
      /monitoring\.podMonitor\.scrapeTimeout \(1m\) is longer than monitoring\.podMonitor\.interval \(30s\)/,
    ],
    [
      "alerts about metrics that nothing scrapes",
      ["monitoring.prometheusRule.enabled=true"],
      /nothing scrapes the metrics.*enable monitoring\.serviceMonitor or monitoring\.podMonitor.*set monitoring\.prometheusRule\.job/,
    ],
    [
      "the job of a scrape configuration together with a monitor that sets the job",
      ["monitoring.podMonitor.enabled=true,monitoring.prometheusRule.job=pipes"],
      /monitoring\.prometheusRule\.job is for metrics .* but monitoring\.podMonitor/,
    ],
    [
      "a monitor that the NetworkPolicy keeps from the metrics",
      ["monitoring.podMonitor.enabled=true,networkPolicy.metricsFrom=null"],
      /networkPolicy\.metricsFrom is empty, so that Prometheus cannot read the metrics/,
    ],
    ["an Ingress without a host", ["api.ingress.enabled=true"], /api\.ingress\.hosts is empty/],
    [
      "a collector URL with the path that the process appends",
      ["tracing.otlpEndpoint=http://collector:4318/v1/traces"],
      /tracing\.otlpEndpoint \(http:\/\/collector:4318\/v1\/traces\) ends with \/v1\/traces/,
    ],
    [
      "credentials for the collector without its URL",
      ["tracing.headersSecretName=otel"],
      /tracing\.otlpEndpoint is empty: set it to the URL of the collector/,
    ],
    [
      "a label with a space",
      ["commonLabels.owner=team orders"],
      /commonLabels\.owner is "team orders", but the value of a label has at most 63 letters/,
    ],
    ["a label of pods that ends with a dot", ["api.podLabels.owner=orders."], /api\.podLabels\.owner is/],
    [
      "the name of an account with capitals",
      ["api.serviceAccount.name=My_Account"],
      /api\.serviceAccount\.name is "My_Account", but it must be the name of a ServiceAccount/,
    ],
    ["an HTTPRoute without a Gateway", ["api.httpRoute.enabled=true"], /api\.httpRoute\.parentRefs is empty/],
  ])("%s", async (_, sets, reason) => {
    const { code, stderr } = await tryHelm([
      "template",
      ...RELEASE,
      ...MINIMAL,
      ...sets.flatMap((set) => ["--set", set]),
    ]);
    expect(stderr).toMatch(reason);
    expect(code).toBe(1);
  });

  it.each([
    ["release", "nameOverride=Orders", /with "release-Orders", from the release name and nameOverride, but/],
    ["release", "nameOverride=my.app", /set fullnameOverride to such a name/],
    ["release", "nameOverride=-app", /nameOverride is "-app", but it becomes a label/],
    ["release", "fullnameOverride=Orders", /with "Orders", from fullnameOverride, but the name of a Service/],
    ["release", "fullnameOverride=my_app", /only lowercase letters, digits and hyphens/],
    ["release", "fullnameOverride=-app", /and begins with a letter/],
    ["team.orders", "", /with "team\.orders-pipe-scaling-operator", from the release name/],
    ["1team", "", /with "1team-pipe-scaling-operator"/],
  ])("names that no Service can have: the release %s with %s", async (name, value, reason) => {
    const set = value ? ["--set", value] : [];
    const { code, stderr } = await tryHelm(["template", name, ...RELEASE.slice(1), ...MINIMAL, ...set]);
    expect(stderr).toMatch(reason);
    expect(code).toBe(1);
  });

  it("values without the required settings, naming each", async () => {
    const { stderr } = await tryHelm(["template", ...RELEASE]);
    expect(stderr).toMatch(/image\.repository is empty.*\n.*pipes\.namespaces is empty/s);
  });

  it("a Kubernetes version that is too old", async () => {
    const { stderr } = await tryHelm(["template", ...RELEASE, ...MINIMAL, "--kube-version", "1.29.9"]);
    expect(stderr).toMatch(
      /requires kubeVersion: >=1\.30\.0-0 which is incompatible with Kubernetes v1\.29\.9/,
    );
  });
});

/** Returns the errors of Helm with an API server that has only the objects that the chart looks up. */
async function errorsWith(
  {
    ipFamilies = ["IPv4"],
    own = [],
  }: { readonly ipFamilies?: readonly string[]; readonly own?: readonly (readonly [string, object])[] },
  ...args: readonly string[]
): Promise<string> {
  const namespaces = "/api/v1/namespaces";
  const resources = [
    { name: "namespaces", kind: "Namespace", namespaced: false },
    { name: "services", kind: "Service", namespaced: true },
    { name: "secrets", kind: "Secret", namespaced: true },
  ];
  const others = [
    { name: "customresourcedefinitions", kind: "CustomResourceDefinition", namespaced: false },
    { name: "endpointslices", kind: "EndpointSlice", namespaced: true },
  ];
  const objects = new Map<string, object>([
    ["/version", { major: "1", minor: "35", gitVersion: "v1.35.0" }],
    ["/api", { kind: "APIVersions", versions: ["v1"] }],
    ["/apis", { kind: "APIGroupList", apiVersion: "v1", groups: [] }],
    ["/api/v1", { kind: "APIResourceList", groupVersion: "v1", resources }],
    ...["apiextensions.k8s.io/v1", "discovery.k8s.io/v1"].map((version): [string, object] => [
      `/apis/${version}`,
      { kind: "APIResourceList", groupVersion: version, resources: others },
    ]),
    ...["default", "acme-pipes"].map((name): [string, object] => [
      `${namespaces}/${name}`,
      { apiVersion: "v1", kind: "Namespace", metadata: { name } },
    ]),
    ["/api/v1/services", { apiVersion: "v1", kind: "ServiceList", items: [] }],
    [
      `${namespaces}/default/services/kubernetes`,
      { apiVersion: "v1", kind: "Service", metadata: { name: "kubernetes" }, spec: { ipFamilies } },
    ],
    ...own,
  ]);
  const server = createServer(({ url = "" }, response) => {
    const object = objects.get(url.replace(/\?.*/, ""));
    response.writeHead(object ? 200 : 404, { "Content-Type": "application/json" });
    const notFound = { kind: "Status", apiVersion: "v1", status: "Failure", reason: "NotFound", code: 404 };
    response.end(JSON.stringify(object ?? notFound));
  }).listen(0, "127.0.0.1");
  onTestFinished(() => {
    server.close();
  });
  await once(server, "listening");
  const { port } = z.object({ port: z.number() }).parse(server.address());
  const kubeconfig = writeKubeconfig(`http://127.0.0.1:${port}`);
  const dryRun = ["--dry-run=server", "--kubeconfig", kubeconfig];
  return (await tryHelm(["template", ...RELEASE, ...MINIMAL, ...dryRun, ...args])).stderr;
}

/** Helm has rendered the chart, and the API server cannot check the objects. */
const ACCEPTED = /^Error: unable to build kubernetes objects/;

describe("the chart whose pods need a Secret", () => {
  const NAMESPACE = "/api/v1/namespaces/pipe-scaling-system";
  const namespace = [
    NAMESPACE,
    { apiVersion: "v1", kind: "Namespace", metadata: { name: "pipe-scaling-system" } },
  ] as const;
  const missing = "api.tls.secretName: the Secret api does not exist in the namespace pipe-scaling-system";

  function errors(own: readonly (readonly [string, object])[], extraObjects: readonly unknown[] = []) {
    const extra = ["--set-json", `extraObjects=${JSON.stringify(extraObjects)}`];
    return errorsWith({ own }, "--set", "api.tls.secretName=api", ...extra);
  }

  it("is rejected without it, although the text of an extra object contains its name", async () => {
    const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "api-token" }, data: { api: "" } };
    expect(await errors([namespace], [secret])).toContain(missing);
  });

  it.each([
    ["a Secret", { apiVersion: "v1", kind: "Secret", metadata: { name: "api" } }],
    [
      "a Secret with a template expression",
      { kind: "Secret", metadata: { name: '{{ printf "%s" "api" }}' } },
    ],
    [
      "a Certificate, in a string with two objects",
      "kind: Issuer\nmetadata: {name: own}\n---\nkind: Certificate\nmetadata: {name: own}\nspec: {secretName: api}\n",
    ],
    [
      "an ExternalSecret",
      { kind: "ExternalSecret", metadata: { name: "own" }, spec: { target: { name: "api" } } },
    ],
  ])("is accepted if an extra object creates it: %s", async (_, extra) => {
    expect(await errors([namespace], [extra])).toMatch(ACCEPTED);
  });

  it("is rejected with a Secret that has no data, naming the keys that it lacks", async () => {
    const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "api" } };
    const text = await errors([namespace, [`${NAMESPACE}/secrets/api`, secret]]);
    expect(text).toContain(
      "the Secret api in the namespace pipe-scaling-system lacks tls.crt and tls.key, and the pods wait for them",
    );
    expect(text).not.toContain("does not exist");
  });

  it("is rejected with the commands that create it, and its namespace before the first installation", async () => {
    const create =
      "`kubectl create secret tls api --cert tls.crt --key tls.key --namespace pipe-scaling-system`";
    expect(await errors([namespace])).toContain(`Create it with ${create}, or leave`);
    expect(await errors([])).toContain(
      `Create it with \`kubectl create namespace pipe-scaling-system\` and ${create}, or leave`,
    );
  });
});

describe("the chart in a cluster whose Services have only IPv6 addresses", () => {
  const errors = (ipFamilies: readonly string[], ...args: readonly string[]) =>
    errorsWith({ ipFamilies }, ...args);

  it("rejects a listen address that only IPv4 probes reach", async () => {
    expect(await errors(["IPv6"])).toContain(
      'listenAddress (0.0.0.0) is an IPv4 address, but the Services of this cluster have only IPv6 addresses, so no probe would reach the pods. Set listenAddress to "::".',
    );
  });

  it.each([
    ["an IPv6 listen address", ["IPv6"], ["--set", "listenAddress=::"]],
    ["IPv4 addresses, too", ["IPv4", "IPv6"], []],
  ])("accepts %s", async (_, families, args) => {
    expect(await errors(families, ...args)).toMatch(ACCEPTED);
  });
});

const APP_VERSION = /^appVersion: (\S+)$/m.exec(readFileSync(`${CHART}/Chart.yaml`, "utf8"))?.[1];
const DIGEST = `sha256:${"0".repeat(64)}`;

describe("the rendered chart", () => {
  it.each([
    ["image.repository=r.example.com/p", `r.example.com/p:${APP_VERSION}`],
    ["image.registry=r.example.com,image.repository=p", `r.example.com/p:${APP_VERSION}`],
    ["image.repository=r.example.com/p,image.tag=1.2.3", "r.example.com/p:1.2.3"],
    [`image.repository=r.example.com/p,image.tag=1.2.3,image.digest=${DIGEST}`, `r.example.com/p@${DIGEST}`],
  ])("runs the image of %s in every pod", async (values, image) => {
    const manifests = JSON.stringify(await rendered(...MINIMAL, "--set", values));
    expect(manifests.match(/"image":"[^"]+"/g)).toEqual(Array(3).fill(`"image":"${image}"`));
  });

  it("lets cert-manager write to another Secret than that of the self-signed certificate, which Helm deletes", async () => {
    const names = async (...args: string[]) => {
      const objects = JSON.stringify(await rendered(...MINIMAL, ...args));
      return new Set(objects.match(/(?<="secretName":")[^"]+/g));
    };
    const api = "release-pipe-scaling-operator-api";
    const certificate = ["--set", "api.tls.certificate.enabled=true,api.tls.certificate.issuerRef.name=x"];
    expect(await names()).toEqual(new Set([`${api}-tls`]));
    expect(await names(...certificate)).toEqual(new Set([`${api}-certificate`]));
    expect(await names(...certificate, "--set", "api.tls.secretName=mine")).toEqual(new Set(["mine"]));
  });

  it("sets the defaults of the Gateway API in an HTTPRoute, because Argo CD takes them for drift", async () => {
    const values = "api.httpRoute.enabled=true,api.httpRoute.parentRefs[0].name=public";
    const template = "templates/api-httproute.yaml";
    const [route] = await rendered(...MINIMAL, "--set", values, "--show-only", template);
    expect(route).toHaveProperty("spec", {
      parentRefs: [{ group: "gateway.networking.k8s.io", kind: "Gateway", name: "public" }],
      rules: [
        {
          matches: [{ path: { type: "PathPrefix", value: "/" } }],
          backendRefs: [
            { group: "", kind: "Service", name: "release-pipe-scaling-operator-api", port: 443, weight: 1 },
          ],
        },
      ],
    });
  });

  it.each([
    ["123", ""],
    ["1e3", ""],
    ["true", ",fullnameOverride=true"],
  ])(
    "writes names and the namespace as texts, also if YAML would read another type, as in %s",
    async (name, others) => {
      /** The rendered objects without the checksums, which depend on the names. */
      async function named(text: string): Promise<string> {
        const accounts = `api.serviceAccount.name=${text},controller.serviceAccount.name=${text}-b`;
        const secrets = `tracing.headersSecretName=${text},api.tls.secretName=${text}`;
        const all = `nameOverride=${text},pipes.namespaces={${text}-a,${text}},${accounts},${secrets}`;
        const set = ["--set-string", all + others.replace(name, text), "--set-json", "extraObjects=[]"];
        const args = ["--values", valuesFile("everything"), "--namespace", text, ...set];
        return JSON.stringify(await rendered(...args), null, 1).replaceAll(/"[0-9a-f]{8,64}"/g, '""');
      }
      expect(await named(name)).toBe((await named(`x${name}`)).replaceAll(`x${name}`, name));
    },
  );

  it("names the API in the subject of the certificate from cert-manager, because curl rejects an empty issuer", async () => {
    const values = "api.tls.certificate.enabled=true,api.tls.certificate.issuerRef.name=x";
    const template = "templates/api-certificate.yaml";
    const [certificate] = await rendered(...MINIMAL, "--set", values, "--show-only", template);
    const { commonName, dnsNames } = z
      .object({ spec: z.object({ commonName: z.string(), dnsNames: z.array(z.string()) }) })
      .parse(certificate).spec;
    expect(commonName).toBe("release-pipe-scaling-operator-api");
    expect(dnsNames).toContain(commonName);
    expect(commonName.length).toBeLessThanOrEqual(64);
  });

  it("restarts both processes when the tiers change, but not when labels change", async () => {
    const checksums = async (...args: string[]) =>
      JSON.stringify(await rendered(...MINIMAL, ...args)).match(/"checksum\/tiers":"\w+"/g);
    const before = await checksums();
    expect(before).toHaveLength(2);
    expect(await checksums("--set", "commonLabels.a=b")).toEqual(before);
    const after = await checksums("--set", "tiers.basic.maximumCpuMillicores=4000");
    expect(after?.[0]).not.toBe(before?.[0]);
    expect(after?.[1]).toBe(after?.[0]);
  });

  it("selects the metrics of a scrape configuration by its job, for the alerts", async () => {
    const values = "monitoring.prometheusRule.enabled=true,monitoring.prometheusRule.job=pipes";
    const rule = JSON.stringify(
      await rendered(...MINIMAL, "--set", values, "--show-only", "templates/prometheusrule.yaml"),
    );
    expect(new Set(rule.match(/ job=\\"\w+\\"/g))).toEqual(new Set([' job=\\"pipes\\"']));
    expect(rule).toContain('"release":"release"');
  });

  it("adds commonAnnotations to every object, and keeps the annotations that an object has", async () => {
    const objects = await rendered("--values", valuesFile("everything"));
    const without = objects.filter(({ metadata }) => !metadata.annotations?.["example.com/cost-center"]);
    // The object of extraObjects has only the annotations that the user gives it.
    expect(without.map(({ kind }) => kind)).toEqual(["ConfigMap"]);
    const [overridden] = await rendered(
      ...["--values", valuesFile("everything"), "--show-only", "templates/api-deployment.yaml"],
      ...["--set", "api.deploymentAnnotations.example\\.com/cost-center=api"],
    );
    expect(overridden?.metadata.annotations).toEqual({
      "example.com/owner": "platform",
      "example.com/cost-center": "api",
    });
  });

  it("writes each label of an object once, and its own labels override commonLabels", async () => {
    const everything = ["--values", valuesFile("everything")];
    const before = await rendered(...everything);
    const keys = new Set(before.flatMap(({ metadata }) => Object.keys(metadata.labels ?? {})));
    expect(keys).toContain("app.kubernetes.io/part-of");
    expect(keys).toContain("prometheus");
    const theirs = Object.fromEntries([...keys].map((key) => [key, "theirs"]));
    const commonLabels = { ...theirs, team: "platform" };
    const after = await rendered(...everything, "--set-json", `commonLabels=${JSON.stringify(commonLabels)}`);
    expect(after.map(({ metadata }) => metadata.labels)).toEqual(
      before.map(({ metadata }) => ({ ...commonLabels, ...metadata.labels })),
    );
  });

  it("writes each annotation of a pod once: its own checksum, and the default container of the values", async () => {
    const annotations = { "kubectl.kubernetes.io/default-container": "proxy", "checksum/tiers": "theirs" };
    const [deployment] = await rendered(
      ...["--values", valuesFile("everything"), "--show-only", "templates/api-deployment.yaml"],
      ...["--set-json", `api.podAnnotations=${JSON.stringify(annotations)}`],
    );
    expect(deployment).toMatchObject({
      spec: {
        template: {
          metadata: {
            annotations: { ...annotations, "checksum/tiers": expect.stringMatching(/^[0-9a-f]{64}$/) },
          },
        },
      },
    });
  });

  it("keeps the CRD and the namespace of the records on uninstall, unless crds.keep is false", async () => {
    const kept = async (...args: string[]) =>
      (await rendered(...MINIMAL, ...args))
        .filter((object) => JSON.stringify(object).includes('"helm.sh/resource-policy":"keep"'))
        .map(({ kind }) => kind);
    expect(await kept()).toEqual(["Namespace", "CustomResourceDefinition"]);
    expect(await kept("--set", "crds.keep=false")).toEqual(["Namespace"]);
  });

  it.each(["api", "controller"] as const)(
    "starts Node for the %s with the options of the benchmarks",
    async (component) => {
      const template = `templates/${component}-deployment.yaml`;
      const [deployment] = await rendered(...MINIMAL, "--show-only", template);
      if (!deployment) throw new Error(`${template} renders no Deployment`);
      const container = containerOf(deployment);
      const [node, program] = entrypoint();
      const { args, env } = NODE[component];
      expect(container.command ?? entrypoint()).toEqual([node, ...args, program]);
      expect(container.env).toEqual(
        expect.arrayContaining(Object.entries(env).map(([name, value]) => ({ name, value }))),
      );
    },
  );

  it.each([
    ["http://collector:4318", 4318],
    ["https://collector.example.com/otel", 443],
    ["http://[2001:db8::1]", 80],
  ])(
    "allows both processes egress to the collector %s and DNS, and by default to neither",
    async (url, port) => {
      const egress = async (...args: string[]) => {
        const template = "templates/networkpolicies.yaml";
        const policies = await rendered(...MINIMAL, "--show-only", template, ...args);
        return policies.slice(0, 2).map((policy) => networkPolicy.parse(policy).spec.egress.slice(1));
      };
      expect(await egress()).toEqual([[], []]);
      const allowed = [{ ports: DNS_PORTS }, { ports: [{ port }] }];
      expect(await egress("--set", `tracing.otlpEndpoint=${url}`)).toEqual([allowed, allowed]);
    },
  );

  it("gives the pod of helm test the limits of the API, which a ResourceQuota may require", async () => {
    const template = "templates/tests/api.yaml";
    const limit = "api.resources.limits.cpu=1";
    const objects = await rendered(...MINIMAL, "--show-only", template, "--set", limit);
    expect(JSON.stringify(objects)).toContain('"limits":{"cpu":1,"memory":"256Mi"}');
  });

  it("allows the pod of helm test egress only to DNS and the API", async () => {
    const template = "templates/networkpolicies.yaml";
    const [, , policy] = await rendered(...MINIMAL, "--show-only", template);
    expect(networkPolicy.parse(policy).spec.egress).toMatchObject([
      { ports: DNS_PORTS },
      { ports: [{ port: "api" }], to: [{ podSelector: {} }] },
    ]);
  });

  it.each([
    ["the default type", "api.service.type=ClusterIP", false],
    ["a load balancer", "api.service.type=LoadBalancer", true],
    ["a node port", "api.service.type=NodePort", true],
    [
      "a load balancer that preserves addresses",
      "api.service.type=LoadBalancer,api.service.externalTrafficPolicy=Local",
      false,
    ],
    [
      "a load balancer that forwards addresses",
      "api.service.type=LoadBalancer,api.config.trustedProxies={10.0.0.0/8}",
      false,
    ],
  ])("warns in the notes if the API does not see the addresses of clients: %s", async (_, values, warns) => {
    const notes = await helm([...["install", ...RELEASE, ...MINIMAL, "--dry-run=client", "--set", values]]);
    expect(notes.includes("the API does not see the addresses of clients")).toBe(warns);
  });

  it.each([
    [
      "controller.replicaCount=0",
      "controller.replicaCount is 0: the API accepts sizes, but nothing applies them",
    ],
    ["api.replicaCount=0", "api.replicaCount is 0: no request gets a response"],
    ["preflight.enabled=false,api.tls.secretName=mine", "api.tls.secretName: the Secret mine does not exist"],
  ])("warns in the notes about %s", async (values, warning) => {
    const install = (...args: string[]) =>
      helm(["install", ...RELEASE, ...MINIMAL, "--dry-run=client", ...args]);
    expect(await install("--set", values)).toContain(`WARNING: ${warning}`);
    expect(await install()).not.toContain(warning);
  });

  it("does not say in the notes that a Secret does not exist if Helm has not looked for it", async () => {
    const values = ["--set", "api.tls.secretName=mine"];
    const notes = await helm(["install", ...RELEASE, ...MINIMAL, "--dry-run=client", ...values]);
    expect(notes).not.toContain("the Secret mine");
  });

  it("writes the self-signed certificate to a file in the notes before it calls the API with it", async () => {
    const notes = await helm(["install", ...RELEASE, ...MINIMAL, "--dry-run=client"]);
    const commands = notes.match(/(?<=^ {3})(kubectl get secret|curl) .*$/gm);
    expect(commands).toEqual([
      expect.stringMatching(/^kubectl get secret .* > ca\.crt$/),
      expect.stringMatching(/^curl --cacert ca\.crt /),
    ]);
  });

  it("names the namespace of the records in the command of the notes that checks the installation", async () => {
    const values = ["--set", "records.namespace=acme-records"];
    const notes = await helm(["install", ...RELEASE, ...MINIMAL, "--dry-run=client", ...values]);
    expect(notes).toContain("   pipe-scaling doctor --namespace acme-records\n");
  });

  it("allows egress to the API server on the ports of the common distributions, or those of the values", async () => {
    const ports = async (...args: string[]) => {
      const policies = await rendered(
        ...[...MINIMAL, "--show-only", "templates/networkpolicies.yaml", ...args],
      );
      return policies.slice(0, 2).map((policy) => networkPolicy.parse(policy).spec.egress[0]);
    };
    const standard = { ports: [443, 6443, 8443, 16_443].map((port) => ({ port })) };
    expect(await ports()).toEqual([standard, standard]);
    const own = { ports: [{ port: 7443 }] };
    expect(await ports("--set", "networkPolicy.apiServer.ports={7443}")).toEqual([own, own]);
  });

  it("allows only the connections of the processes, with the peers that the values list", async () => {
    const specs = async (set: "minimal" | "everything") => {
      const template = "templates/networkpolicies.yaml";
      const policies = await rendered("--values", valuesFile(set), "--show-only", template);
      return policies.slice(0, 2).map((policy) => networkPolicy.parse(policy).spec);
    };
    const pods = (component: string) => ({
      matchLabels: {
        "app.kubernetes.io/name": "pipe-scaling-operator",
        "app.kubernetes.io/instance": "release",
        "app.kubernetes.io/component": component,
      },
    });
    const of = (component: string) => ({
      podSelector: pods(component),
      policyTypes: ["Ingress", "Egress"],
    });
    const apiServer = { ports: [443, 6443, 8443, 16_443].map((port) => ({ port })) };
    const api = { ports: [{ port: "api" }] };
    const metrics = { ports: [{ port: "ops" }], from: [{ namespaceSelector: {} }] };
    expect(await specs("minimal")).toEqual([
      { ...of("api"), ingress: [api, metrics], egress: [apiServer] },
      { ...of("controller"), ingress: [metrics], egress: [apiServer] },
    ]);
    const namespace = (name: string) => ({
      namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": name } },
    });
    const egress = [
      { ports: [{ port: 6443 }], to: [{ ipBlock: { cidr: "192.0.2.10/32" } }] },
      { ports: DNS_PORTS },
      { ports: [{ port: 4318 }], to: [namespace("observability")] },
    ];
    const ownMetrics = { ...metrics, from: [namespace("monitoring")] };
    const ownApi = { ...api, from: [namespace("gateways"), { podSelector: pods("test") }] };
    expect(await specs("everything")).toEqual([
      { ...of("api"), ingress: [ownApi, ownMetrics], egress },
      { ...of("controller"), ingress: [ownMetrics], egress },
    ]);
  });

  it("uses the pull secrets of the parent chart and its own in every pod", async () => {
    const objects = JSON.stringify(await rendered("--values", valuesFile("everything")));
    const secrets = '"imagePullSecrets":[{"name":"company-registry"},{"name":"registry"}]';
    expect(objects.split(secrets)).toHaveLength(4);
  });

  it("omits fields of a security context that are null", async () => {
    const objects = JSON.stringify(await rendered("--values", valuesFile("bare")));
    const context = '"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}}';
    expect(objects.split(context)).toHaveLength(4);
  });

  it("routes all paths of a host to the API, or those that the values list", async () => {
    const template = "templates/api-ingress.yaml";
    const [ingress] = await rendered("--values", valuesFile("everything"), "--show-only", template);
    const service = { name: "release-pipe-scaling-operator-api", port: { number: 8443 } };
    const http = (path: string) => ({ paths: [{ path, pathType: "Prefix", backend: { service } }] });
    expect(ingress).toMatchObject({
      spec: {
        tls: [{ secretName: "pipes-example-com", hosts: ["pipes.example.com"] }],
        rules: [
          { host: "pipes.example.com", http: http("/") },
          { host: "api.example.com", http: http("/v1") },
        ],
      },
    });
  });

  it("uses the names of the service accounts in pods, bindings and policies", async () => {
    const names = "api.serviceAccount.name=scaling-api,controller.serviceAccount.name=scaling-controller";
    const objects = await rendered(...MINIMAL, "--set", names);
    for (const account of ["scaling-api", "scaling-controller"]) {
      const using = objects.filter((object) => JSON.stringify(object).includes(account));
      const kinds = ["ServiceAccount", "Deployment", "RoleBinding", "ValidatingAdmissionPolicy"];
      expect(using.map(({ kind }) => kind)).toEqual(expect.arrayContaining(kinds));
    }
    expect(JSON.stringify(objects)).not.toContain("system:serviceaccount:pipe-scaling-system:release");
  });

  it("creates no ServiceAccount that exists already", async () => {
    const kinds = (await rendered("--values", valuesFile("bare"))).map(({ kind }) => kind);
    expect(kinds).toContain("Deployment");
    expect(kinds).not.toContain("ServiceAccount");
  });

  it("passes the extra parts of the values to the Deployment", async () => {
    const template = "templates/api-deployment.yaml";
    const [deployment] = await rendered("--values", valuesFile("everything"), "--show-only", template);
    const mount = { name: "company-ca", mountPath: "/etc/company", readOnly: true };
    expect(deployment).toMatchObject({
      metadata: { annotations: { "example.com/owner": "platform" } },
      spec: {
        strategy: { rollingUpdate: { maxUnavailable: 0 } },
        revisionHistoryLimit: 3,
        template: {
          spec: {
            containers: [
              {
                name: "api",
                args: ["api", "--log-level=debug"],
                env: expect.arrayContaining([{ name: "NODE_EXTRA_CA_CERTS", value: "/etc/company/ca.crt" }]),
                volumeMounts: expect.arrayContaining([mount]),
              },
              { name: "proxy", image: "registry.example.com/platform/proxy:1.2.3" },
            ],
            volumes: expect.arrayContaining([{ name: "company-ca", configMap: { name: "company-ca" } }]),
          },
        },
      },
    });
  });

  it.each([
    ["serviceMonitor", "ServiceMonitor", "endpoints"],
    ["podMonitor", "PodMonitor", "podMetricsEndpoints"],
  ])("passes the scrape settings of monitoring.%s, and the default action", async (key, kind, endpoints) => {
    const relabeling = { sourceLabels: ["__meta_kubernetes_pod_node_name"], targetLabel: "node" };
    const settings = {
      interval: "20s",
      scrapeTimeout: "5s",
      relabelings: [relabeling],
      metricRelabelings: [{ sourceLabels: ["__name__"], regex: "nodejs_.*", action: "drop" }],
    };
    const values = `monitoring.${key}=${JSON.stringify({ enabled: true, ...settings })}`;
    const objects = await rendered(...MINIMAL, "--set-json", values);
    expect(objects.find((object) => object.kind === kind)).toMatchObject({
      spec: {
        jobLabel: "app.kubernetes.io/instance",
        [endpoints]: [{ port: "ops", ...settings, relabelings: [{ ...relabeling, action: "replace" }] }],
      },
    });
  });

  it("renders extra objects with their template expressions", async () => {
    const map = { apiVersion: "v1", kind: "ConfigMap" };
    const extra = [
      { ...map, metadata: { name: "{{ .Release.Name }}-a" } },
      stringify({ ...map, metadata: { name: "b" } }),
    ];
    const objects = await rendered(...MINIMAL, "--set-json", `extraObjects=${JSON.stringify(extra)}`);
    const added = objects.filter(({ metadata: { labels } }) => labels === undefined);
    expect(added.map(({ metadata: { name } }) => name)).toEqual(["release-a", "b"]);
  });

  it("passes the settings of a load balancer and the IP families to the Service", async () => {
    const [service] = await rendered(
      ...["--values", valuesFile("everything"), "--show-only", "templates/api-service.yaml"],
    );
    expect(service).toMatchObject({
      spec: {
        type: "LoadBalancer",
        externalTrafficPolicy: "Local",
        loadBalancerClass: "example.com/internal",
        loadBalancerSourceRanges: ["192.0.2.0/24", "2001:db8::/32"],
        ipFamilyPolicy: "PreferDualStack",
        ipFamilies: ["IPv4"],
      },
    });
  });

  it("gives the controller no cluster-wide permission but to list nodes, and none with rbac.nodes=false", async () => {
    const names = async (...args: string[]) =>
      (await rendered(...MINIMAL, "--set", "rbac.aggregate=false", ...args))
        .filter(({ kind }) => /^ClusterRole/.test(kind))
        .map(({ kind, metadata: { name } }) => `${kind} ${name}`);
    const name = "release-pipe-scaling-operator-controller-nodes.pipe-scaling-system";
    expect(await names()).toEqual([`ClusterRole ${name}`, `ClusterRoleBinding ${name}`]);
    expect(await names("--set", "rbac.nodes=false")).toEqual([]);
    expect(await names("--set", "rbac.create=false")).toEqual([]);
  });

  it("lets the cluster role view read PipeScalings, and edit and admin change them", async () => {
    const roles = await rendered(...MINIMAL, "--show-only", "templates/aggregated-roles.yaml");
    const aggregated = roles.map((role) => ({
      to: Object.entries(role.metadata.labels ?? {}).flatMap(([key, value]) => (value === "true" ? key : [])),
      rules: granted([role]),
    }));
    const to = (...names: string[]) => names.map((name) => `rbac.authorization.k8s.io/aggregate-to-${name}`);
    const pipeScalings = { group: "pipes.clouddb.dev", resource: "pipescalings" };
    const changes = ["create", "update", "patch", "delete", "deletecollection"];
    expect(aggregated).toEqual([
      { to: to("admin", "edit", "view"), rules: [{ ...pipeScalings, verbs: ["get", "list", "watch"] }] },
      { to: to("admin", "edit"), rules: [{ ...pipeScalings, verbs: changes }] },
    ]);
  });

  it("creates objects for the authentication of metrics only with monitoring.authentication", async () => {
    const added = async (...args: string[]) => {
      const names = async (more: readonly string[]) =>
        (await rendered(...MINIMAL, ...more)).map(({ kind, metadata: { name } }) => `${kind} ${name}`);
      const before = await names(args);
      const after = await names([...args, "--set", "monitoring.authentication.enabled=true"]);
      return after.filter((each) => !before.includes(each)).toSorted();
    };
    const name = "release-pipe-scaling-operator-metrics";
    const inCluster = (what: string) => `${name}-${what}.pipe-scaling-system`;
    const roles = [
      `ClusterRole ${inCluster("reader")}`,
      `ClusterRole ${inCluster("reviewer")}`,
      `ClusterRoleBinding ${inCluster("reviewer")}`,
    ];
    const token = [`Secret ${name}-reader`, `ServiceAccount ${name}-reader`];
    expect(await added()).toEqual(roles);
    expect(await added("--set", "rbac.create=false")).toEqual([]);
    expect(await added("--set", "rbac.create=false,monitoring.podMonitor.enabled=true")).toEqual(token);
    for (const monitor of ["serviceMonitor", "podMonitor"]) {
      const binding = `ClusterRoleBinding ${inCluster("reader")}`;
      expect(await added("--set", `monitoring.${monitor}.enabled=true`)).toEqual(
        [...roles, ...token, binding].toSorted(),
      );
    }
  });

  it.each(["serviceMonitor", "podMonitor"])(
    "sends the token of a %s only with monitoring.authentication",
    async (monitor) => {
      const credentials = async (...args: string[]) => {
        const objects = await rendered(...MINIMAL, "--set", `monitoring.${monitor}.enabled=true`, ...args);
        return JSON.stringify(objects).match(/"authorization":\{"credentials":\{[^}]*\}/g);
      };
      expect(await credentials()).toBeNull();
      expect(await credentials("--set", "monitoring.authentication.enabled=true")).toEqual([
        '"authorization":{"credentials":{"name":"release-pipe-scaling-operator-metrics-reader","key":"token"}',
      ]);
    },
  );

  it("grants permissions for resizes in place, and limits them, only with rbac.inPlaceResize", async () => {
    const made = async (...args: string[]) => {
      const objects = JSON.stringify(await rendered(...MINIMAL, ...args));
      return ["pods/resize", '"replicasets"', "controller-resize", "may pause"].map((text) =>
        objects.includes(text),
      );
    };
    expect(await made()).toEqual([true, true, true, true]);
    const without = "rbac.inPlaceResize=false,controller.config.resizeStrategy=Rollout";
    expect(await made("--set", without)).toEqual([false, false, false, false]);
  });

  it("grants permissions for StatefulSets, and limits them, only with rbac.statefulSets", async () => {
    const made = async (...args: string[]) => {
      const objects = JSON.stringify(await rendered(...MINIMAL, ...args));
      const texts = ['"statefulsets"', '["delete"]', "controller-statefulsets", "controller-pods-delete"];
      return [...texts, "controller-pods.", "hold the pods of a StatefulSet only"].map((text) =>
        objects.includes(text),
      );
    };
    expect(await made()).toEqual([true, true, true, true, true, true]);
    const none = [false, false, false, false, false, false];
    expect(await made("--set", "rbac.statefulSets=false")).toEqual(none);
    const rollouts = "rbac.inPlaceResize=false,controller.config.resizeStrategy=Rollout";
    expect(await made("--set", rollouts)).toEqual([true, true, true, true, false, false]);
    expect(await made("--set", `rbac.statefulSets=false,${rollouts}`)).toEqual(none);
  });

  it("gives the controller time to resume the Deployments that it has paused before it is killed", async () => {
    const [deployment] = await rendered(...MINIMAL, "--show-only", "templates/controller-deployment.yaml");
    const { spec } = ending.parse(deployment);
    // 20 s for commits, and 10 s for the last writes.
    expect(spec.template.spec.terminationGracePeriodSeconds).toBeGreaterThan(20 + 10);
  });

  it.each([
    ["names", "rbac.inPlaceResize=true", true],
    ["does not name", "rbac.inPlaceResize=false,controller.config.resizeStrategy=Rollout", false],
  ])(
    "%s the commands against Deployments that stay paused in its notes with %s",
    async (_, values, names) => {
      const notes = await helm(["install", ...RELEASE, ...MINIMAL, "--dry-run=client", "--set", values]);
      for (const text of ["kubectl scale deployment release-pipe-scaling-operator-controller", "doctor"])
        expect(notes.includes(text), text).toBe(names);
    },
  );

  it("grants no account a wildcard, and the controller no access to Secrets", async () => {
    for (const set of VALUE_SETS) {
      const rules = (await rendered("--values", valuesFile(set))).filter(({ kind }) => /Role$/.test(kind));
      expect(JSON.stringify(rules)).not.toContain('"*"');
      const ofController = rules.filter(({ metadata }) => metadata.name.includes("controller"));
      expect(JSON.stringify(ofController)).not.toContain("secrets");
    }
  });
});

/** A NetworkPolicy sees the port of the DNS pods, which is 5353 in OpenShift. */
const DNS_PORTS = [53, 5353].flatMap((port) => [{ port, protocol: "UDP" }, { port }]);

/** Settings that a pod leaves to the process: it uses its ServiceAccount and its host name, and never a dry run. */
const NOT_IN_PODS = ["kubeconfig", "identity", "dryRun"];

describe.each([
  ["api", apiSettings],
  ["controller", controllerSettings],
] as const)("the pod of the %s", (component, settings) => {
  /** Names of the variables that the pod has with at least one of the value sets. */
  let variables: ReadonlySet<string>;
  beforeAll(async () => {
    const template = `templates/${component}-deployment.yaml`;
    const sets = VALUE_SETS.map((set) => rendered("--values", valuesFile(set), "--show-only", template));
    const deployments = (await Promise.all(sets)).flat();
    variables = new Set(deployments.flatMap((each) => containerOf(each).env.map(({ name }) => name)));
  });

  it.each(
    declaredOptions(settings)
      .filter(({ key }) => !NOT_IN_PODS.includes(key))
      .map(({ key, variable }) => [key, variable]),
  )("gets the setting %s in %s", (_, variable) => {
    expect(variables).toContain(variable);
  });
});

const started = z.object({
  spec: z.object({
    template: z.object({
      spec: z.object({
        // The process is the first container; others may follow.
        containers: z
          .tuple([
            z.object({
              command: z.array(z.string()).optional(),
              env: z.array(z.looseObject({ name: z.string() })),
            }),
          ])
          .rest(z.unknown()),
      }),
    }),
  }),
});

function containerOf(deployment: Manifest) {
  return started.parse(deployment).spec.template.spec.containers[0];
}

const ending = z.object({
  spec: z.object({
    template: z.object({ spec: z.object({ terminationGracePeriodSeconds: z.number() }) }),
  }),
});

const networkPolicy = z.object({ spec: z.looseObject({ egress: z.array(z.unknown()) }) });

function* everyField(schema: ValueSchema, path: string): Generator<[string, ValueSchema]> {
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    yield [`${path}.${name}`, field];
    yield* everyField(field, `${path}.${name}`);
  }
  for (const below of ["items", "additionalProperties"]) {
    const field = schema[below];
    if (isSchema(field)) yield* everyField(field, `${path}[]`);
  }
}

function isSchema(value: unknown): value is ValueSchema {
  return typeof value === "object" && value !== null;
}
